"""Whether a result fails, and why: its exit code. The command line only returns it."""

from __future__ import annotations

from msgspec.structs import replace

from seatrial.model.limit import Limit, reaches
from seatrial.model.result import Exit, Result

FINDINGS = 1
BROKEN = 2
NOTHING = 3


def ended(result: Result, limit: Limit, *, zero: bool = False) -> Result:
    """The result with its exit code; `zero` is --exit-zero."""
    return replace(result, exit=exit_of(result, limit, zero=zero))


def exit_of(result: Result, limit: Limit, *, zero: bool = False) -> Exit:
    """The exit code of a check and its reason; `zero` is --exit-zero."""
    found = _exit(result, limit)
    return replace(found, code=0, reason=f"--exit-zero, but {found.reason}") if zero and found.code else found


def _exit(result: Result, limit: Limit) -> Exit:
    failing = tuple(finding for finding in result.findings if reaches(finding, limit))
    if failing:
        return Exit(
            FINDINGS, f"{len(failing)} finding{' reaches' if len(failing) == 1 else 's reach'} {limit}", failing
        )
    if result.hollow and not result.findings and not limit.unrehearsed:
        return Exit(NOTHING, "nothing could be rehearsed")
    if result.broken:
        charts = f"{result.charts} chart{'' if result.charts == 1 else 's'}"
        return Exit(BROKEN, f"{result.broken} of {charts} could not be checked")
    if result.not_rehearsed and limit.unrehearsed:
        return Exit(FINDINGS, "not everything was rehearsed (--fail-on-unrehearsed)")
    if result.findings:
        new = "new " if any(finding.known for finding in result.findings) else ""
        return Exit(0, f"no {new}finding reaches {limit}")
    found_none = "no findings in what was rehearsed" if result.not_rehearsed else "no findings"
    found_none += " of the selected rules" if result.not_selected else ""
    return Exit(0, found_none + (" but ignored ones" if result.ignored else ""))
