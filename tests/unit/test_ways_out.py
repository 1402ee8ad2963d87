"""Ways out: every rule has one, and each names what it is about."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from recordings import NAMES, findings_of, recorded
from rehearsed import FINDING

from seatrial.fix.ways import ways, with_way_out
from seatrial.model.engine import EngineId
from seatrial.model.finding import Finding
from seatrial.model.resource import Place, Ref
from seatrial.rules import all_explained, all_rules
from seatrial.sources.places import place_of

ENGINES = ("helm", "argocd", "flux", "kubectl", "pulumi")
ABOUT_NO_OBJECT = ("interrupted-release-is-locked",)
LONG = 320
"""Two sentences; commands may be longer."""


def said(finding: Finding) -> list[str]:
    fix = with_way_out(finding).fix
    assert fix is not None
    return [fix.title, *fix.steps]


def test_every_rule_has_a_way_out() -> None:
    assert {rule.name for rule in all_explained()} == set(ways())


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("rule", [rule.name for rule in all_explained()])
def test_a_way_out_is_a_sentence_about_the_object(rule: str, engine: str) -> None:
    objects = (Ref("Secret", "default", "first"), Ref("Job", "default", "second"))
    places = (Place("shop/templates/a.yaml", 3), Place("shop/templates/b.yaml", 5))
    about = replace(FINDING, rule=rule, objects=objects, places=places, engines=(EngineId(engine, "1.0.0"),))
    words = said(about)
    named = any(name in " ".join(words) for name in ("first", "second", "a.yaml:3"))
    assert named or rule in ABOUT_NO_OBJECT
    assert all(text[0].isupper() and not text.endswith(" ") and "{ob" not in text for text in words)
    assert len(words[0]) <= LONG


def test_a_way_out_needs_no_object_and_no_place() -> None:
    for rule in all_explained():
        assert said(replace(FINDING, rule=rule.name, objects=(), places=(), engines=()))


@pytest.mark.parametrize("name", NAMES)
def test_the_way_out_of_a_recorded_finding_names_its_object(name: str) -> None:
    one = recorded(name)
    for rule in all_rules():
        for finding in findings_of(rule.name, one):
            placed = replace(finding, places=tuple(map(place_of, finding.pointers)))
            words = " ".join(said(placed))
            assert not finding.objects or any(ref.name in words for ref in finding.objects)


def test_what_a_rule_knows_comes_before_the_table() -> None:
    known = replace(FINDING, way_out=("Do this.", "Then that."), recover="kubectl delete pod web")
    assert said(known) == ["Do this.", "Then that.", "If it has happened: kubectl delete pod web"]
