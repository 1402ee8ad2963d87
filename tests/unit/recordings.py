"""Recorded rehearsals of stories, to test rules and evidence on. `pytest tests/scenarios --record` renews them."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from seatrial.evidence.moment import Moment, moments
from seatrial.model.finding import Finding
from seatrial.play import stored
from seatrial.rules import all_rules

FOLDER = Path(__file__).parent / "recorded" / "rehearsals"
NAMES = sorted(path.stem for path in FOLDER.glob("*.json"))


@cache
def recorded(name: str) -> stored.StoredRehearsal:
    return stored.read(str(FOLDER / f"{name}.json"))


def findings_of(rule: str, one: stored.StoredRehearsal) -> list[Finding]:
    check = next(known.check for known in all_rules() if known.name == rule)
    return list(check(one.rehearsal, one.case))


def steps_of(name: str) -> list[Moment]:
    """The steps of a recording, as rules see them."""
    one = recorded(name)
    return list(moments(one.rehearsal, one.case))


def pointed_at(finding: Finding) -> list[str]:
    """`v2/templates/cm.yaml metadata.name`, or a line for what is known by its line alone."""
    return [
        str(one.place) if one.place else f"{one.origin.file} {'.'.join(map(str, one.path))}".strip()
        for one in finding.pointers
    ]
