"""Invariants on recorded rehearsals, without any rule: what each finds, and that a finding of a rule replaces it."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
import yaml
from msgspec import Struct
from recordings import NAMES, findings_of, recorded

from seatrial.evidence.breaches import Breach, explains
from seatrial.evidence.moment import Moment
from seatrial.model.finding import Finding, Reviewed
from seatrial.rules import all_invariants

TABLE = Path(__file__).parent / "recorded" / "breaches.yaml"


class Expected(Struct, frozen=True, forbid_unknown_fields=True):
    """One finding of an invariant, without its words."""

    rule: str
    found: str
    """Step, action and damage: `2 upgrade outage`."""
    objects: list[str]


EXPECTED = msgspec.convert(yaml.safe_load(TABLE.read_text()), dict[str, list[Expected]])


def _breaches(name: str, findings: tuple[Finding, ...] = ()) -> list[Finding]:
    one = recorded(name)
    trial = [Reviewed(one.rehearsal, one.case, findings)]
    return [finding for invariant in all_invariants() for finding in invariant.check(trial)]


@pytest.mark.parametrize("name", NAMES)
def test_invariants_find_the_breaches_of_a_recording(name: str) -> None:
    found = [
        Expected(one.rule, f"{one.step + 1} {one.action} {one.damage}", [*map(str, one.objects)])
        for one in _breaches(name)
    ]
    assert found == EXPECTED.get(name, [])


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("kubectl-force", "force-replace-side-effects"),
        ("rotated-password", "random-secret-rotates-on-upgrade"),
        ("duplicate-object", "duplicate-object"),
        ("crd-cascade", "crd-in-templates-deleted-on-uninstall"),
    ],
)
def test_the_finding_of_a_rule_replaces_that_of_an_invariant(name: str, rule: str) -> None:
    explained = tuple(findings_of(rule, recorded(name)))
    assert [one for one in _breaches(name) if one.rule != "step-fails"]
    assert [one for one in _breaches(name, explained) if one.rule != "step-fails"] == []


def test_a_finding_explains_a_breach_by_its_events_or_by_the_object_in_the_same_step() -> None:
    one = recorded("regular-becomes-hook")
    (finding,) = findings_of("release-to-hook-flip", one)
    event = next(event for event in one.rehearsal.timeline if event.index in finding.evidence)
    moment = Moment(one.rehearsal, one.case, finding.step)
    other = next(event for event in one.rehearsal.timeline if event.object not in finding.objects)
    breach = Breach(moment, event.object, "outage", "")
    assert explains(finding, breach)
    assert not explains(finding, msgspec.structs.replace(breach, moment=moment.at(finding.step + 1)))
    assert explains(finding, msgspec.structs.replace(breach, moment=moment.at(finding.step + 1), lasts=True))
    assert explains(finding, Breach(moment, other.object, "outage", "", events=(event,)))
    assert not explains(finding, Breach(moment, other.object, "outage", ""))
