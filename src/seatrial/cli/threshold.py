"""`--fail-on`: which findings make the exit code 1, and the reason that the report shows."""

from __future__ import annotations

from difflib import get_close_matches

from msgspec import Struct
from msgspec.structs import replace

from seatrial.cli import FAILED, NOTHING
from seatrial.model.errors import CannotContinue
from seatrial.model.finding import CERTAINTIES, DAMAGES, Certainty, Damage, Finding
from seatrial.model.result import Exit, Result
from seatrial.report.wording import counted, is_partial


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


def ended(result: Result, threshold: Threshold, *, zero: bool = False) -> Result:
    """The result with its exit code."""
    return replace(result, exit=exit_of(result, threshold, zero=zero))


def exit_of(result: Result, threshold: Threshold, *, zero: bool = False) -> Exit:
    """The exit code of a check and its reason; `zero` is --exit-zero."""
    if result.hollow and not result.findings:
        return Exit(0 if zero else NOTHING, "nothing could be rehearsed" + (" (--exit-zero)" if zero else ""))
    failing = tuple(finding for finding in result.findings if _is_as_bad(finding, threshold))
    limit = f"--fail-on {threshold.certainty}:{threshold.damage}"
    if not failing and result.broken:
        could_not = f"{result.broken} of {counted(result.charts, 'chart')} could not be checked"
        return Exit(0 if zero else FAILED, f"--exit-zero, but {could_not}" if zero else could_not)
    if not failing:
        found_none = "no findings in what was rehearsed" if is_partial(result) else "no findings"
        found_none += " but ignored ones" if result.ignored else ""
        return Exit(0, f"no finding reaches {limit}" if result.findings else found_none)
    reaches = f"{counted(len(failing), 'finding reaches', 'findings reach')} {limit}"
    return Exit(0, f"--exit-zero, but {reaches}", failing) if zero else Exit(1, reaches, failing)


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
