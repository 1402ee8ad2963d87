"""Rules on recorded rehearsals: each reports its hazard, and no other rule reports anything."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
import yaml
from msgspec import Struct
from recordings import NAMES, findings_of, pointed_at, recorded

from seatrial.evidence.causes import without_covered
from seatrial.model.finding import Finding
from seatrial.rules import all_rules
from seatrial.sources.places import place_of


class Expected(Struct, frozen=True, forbid_unknown_fields=True):
    """One finding, without its words."""

    rule: str
    found: str
    """Step, certainty and damage: `upgrade will outage`."""
    objects: list[str]
    pointers: list[str] = []


TABLE = Path(__file__).parent / "recorded" / "findings.yaml"
EXPECTED = msgspec.convert(yaml.safe_load(TABLE.read_text()), dict[str, list[Expected]])
EACH = [pytest.param(name, expected, id=f"{name}-{expected.rule}") for name in EXPECTED for expected in EXPECTED[name]]


def shown(finding: Finding) -> Expected:
    found = f"{finding.action} {finding.certainty} {finding.damage}"
    return Expected(finding.rule, found, [*map(str, finding.objects)], pointed_at(finding))


@pytest.mark.parametrize(("name", "expected"), EACH)
def test_the_rule_finds_its_hazard(name: str, expected: Expected) -> None:
    assert expected in [shown(finding) for finding in findings_of(expected.rule, recorded(name))]


@pytest.mark.parametrize("name", NAMES)
def test_no_other_rule_reports_anything(name: str) -> None:
    one, rules = recorded(name), all_rules()
    found = [finding for rule in rules for finding in findings_of(rule.name, one)]
    left = {finding.rule for finding in without_covered(found, one.rehearsal, rules)}
    assert left == {expected.rule for expected in EXPECTED[name]}


@pytest.mark.parametrize(("name", "expected"), EACH)
def test_a_finding_names_events_and_lines_that_exist(name: str, expected: Expected) -> None:
    one = recorded(name)
    for finding in findings_of(expected.rule, one):
        assert {one.rehearsal.timeline[index].index for index in finding.evidence} == set(finding.evidence)
        assert [place for place in map(place_of, finding.pointers) if one.excerpt(place) is None] == []
        assert finding.message and all(finding.details)


def test_a_rule_reports_nothing_about_a_trial_without_steps() -> None:
    one = recorded("regular-becomes-hook")
    steps = msgspec.structs.replace(one.rehearsal, steps=(), timeline=(), otherwise=None)
    case = msgspec.structs.replace(one.case, releases=())
    assert [finding for rule in all_rules() for finding in rule.check(steps, case)] == []
