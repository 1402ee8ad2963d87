"""`--fail-on`: which findings make the exit code 1."""

from __future__ import annotations

from difflib import get_close_matches

from msgspec import Struct

from seatrial.model.errors import CannotContinue
from seatrial.model.finding import CERTAINTIES, DAMAGES, Certainty, Damage, Finding
from seatrial.model.result import Result


class Threshold(Struct, frozen=True):
    certainty: Certainty = "likely"
    damage: Damage = "failed-deploy"
    removal: bool = False
    """Whether what a removal does by design counts."""


def parse(text: str, *, removal: bool = False) -> Threshold:
    """`may`, `outage`, `will:nuisance`: a certainty, a damage, or both; the other keeps its default."""
    certainty, damage = Threshold().certainty, Threshold().damage
    for part in text.split(":") if text else ():
        if part in CERTAINTIES:
            certainty = CERTAINTIES[CERTAINTIES.index(part)]
        elif part in DAMAGES:
            damage = DAMAGES[DAMAGES.index(part)]
        else:
            raise CannotContinue(_refusal(text, part))
    return Threshold(certainty, damage, removal)


def reached(result: Result, threshold: Threshold) -> bool:
    """Whether a finding is at or above the threshold."""
    return any(_is_as_bad(finding, threshold) for finding in result.findings)


def _is_as_bad(finding: Finding, threshold: Threshold) -> bool:
    if finding.removal and not threshold.removal:
        return False
    return CERTAINTIES.index(finding.certainty) <= CERTAINTIES.index(threshold.certainty) and DAMAGES.index(
        finding.damage
    ) <= DAMAGES.index(threshold.damage)


def _refusal(text: str, part: str) -> str:
    known = (*CERTAINTIES, *DAMAGES)
    close = get_close_matches(part, known, n=1)
    meant = f"did you mean {close[0]}?" if close else f"use one of {', '.join(known)}, or a pair such as will:outage"
    return f"--fail-on {text}: {part!r} is not a certainty or a damage level; {meant}"
