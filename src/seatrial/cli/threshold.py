"""`--fail-on`: which findings make the exit code 1, and the reason that the report shows."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from msgspec.structs import replace

from seatrial.cli import FAILED, NOTHING
from seatrial.model.errors import CannotContinue
from seatrial.model.finding import CERTAINTIES, DAMAGES
from seatrial.model.limit import Limit, reaches
from seatrial.model.result import Exit, Result
from seatrial.report.wording import counted, is_partial

if TYPE_CHECKING:
    from seatrial.cli.flags import FindingFlags
    from seatrial.sources.configuration import Configured


def limit_of(flags: FindingFlags, configured: Configured) -> Limit:
    """The limit of the flags, else of seatrial.yaml."""
    removal = flags.fail_on_removal or configured.given.fail_on_removal
    if flags.fail_on or not configured.given.fail_on:
        return parse(flags.fail_on, removal=removal)
    return parse(configured.given.fail_on, removal=removal, where=f"{configured.place('fail-on')}: ")


def parse(text: str, *, removal: bool = False, where: str = "") -> Limit:
    """`may`, `outage`, `will:nuisance`: a certainty, a damage, or both; the other keeps its default.

    `where` is the place in a file that errors begin with.
    """
    certainty, damage = Limit().certainty, Limit().damage
    for part in text.split(":") if text else ():
        if part in CERTAINTIES:
            certainty = CERTAINTIES[CERTAINTIES.index(part)]
        elif part in DAMAGES:
            damage = DAMAGES[DAMAGES.index(part)]
        else:
            raise CannotContinue(where + _refusal(text, part))
    return Limit(certainty, damage, removal)


def ended(result: Result, limit: Limit, *, zero: bool = False) -> Result:
    """The result with its exit code."""
    return replace(result, exit=exit_of(result, limit, zero=zero))


def exit_of(result: Result, limit: Limit, *, zero: bool = False) -> Exit:
    """The exit code of a check and its reason; `zero` is --exit-zero."""
    if result.hollow and not result.findings:
        return Exit(0 if zero else NOTHING, "nothing could be rehearsed" + (" (--exit-zero)" if zero else ""))
    failing = tuple(finding for finding in result.findings if reaches(finding, limit))
    if not failing and result.broken:
        could_not = f"{result.broken} of {counted(result.charts, 'chart')} could not be checked"
        return Exit(0 if zero else FAILED, f"--exit-zero, but {could_not}" if zero else could_not)
    if not failing:
        found_none = "no findings in what was rehearsed" if is_partial(result) else "no findings"
        found_none += " of the selected rules" if result.not_selected else ""
        found_none += " but ignored ones" if result.ignored else ""
        new = "new " if any(finding.known for finding in result.findings) else ""
        return Exit(0, f"no {new}finding reaches {limit}" if result.findings else found_none)
    so_many = f"{counted(len(failing), 'finding reaches', 'findings reach')} {limit}"
    return Exit(0, f"--exit-zero, but {so_many}", failing) if zero else Exit(1, so_many, failing)


def _refusal(text: str, part: str) -> str:
    known = (*CERTAINTIES, *DAMAGES)
    close = get_close_matches(part, known, n=1)
    meant = f"did you mean {close[0]}?" if close else f"use one of {', '.join(known)}, or a pair such as will:outage"
    return f"--fail-on {text}: {part!r} is not a certainty or a damage level; {meant}"
