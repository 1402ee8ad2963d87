"""`--fix` and `--diff`: which fixes are tried, the patch, and what was written."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from seatrial.cli import terminal
from seatrial.cli.flags import FixFlags, OutputFlags
from seatrial.cli.outputs import ReportTarget
from seatrial.fix.diff import diff_of
from seatrial.fix.writing import written
from seatrial.model.errors import CannotContinue
from seatrial.model.finding import Fix
from seatrial.model.limit import Limit
from seatrial.model.result import Fixing, Result
from seatrial.report.page import harmless

TRIES_MAX = 3
REHEARSALS_MAX = 24
"""Limits of a check without --fix and --diff, where fixes are a part of the report."""


def refuse(flags: FixFlags, *, output: bool, other: bool) -> None:
    """Refuse flags that contradict each other; `other` flags compare inputs or read stored rehearsals."""
    if flags.diff and (flags.fix or output):
        beside = "--fix" if flags.fix else "--output"
        raise CannotContinue(f"--diff prints only a patch: it cannot be combined with {beside}")
    if flags.unsafe and not (flags.fix or flags.diff):
        raise CannotContinue("--unsafe-fixes needs --diff or --fix")
    if other and (flags.fix or flags.diff):
        raise CannotContinue("--fix and --diff cannot be combined with --compare or --rehearsal")


def asked(flags: FixFlags, limit: Limit, targets: Sequence[ReportTarget]) -> Fixing | None:
    """Without --fix and --diff, fixes are tried for what fails the check, if a report shows them."""
    if flags.fix or flags.diff:
        return Fixing(unsafe=flags.unsafe, writes=flags.fix)
    if all(target.format == "concise" for target in targets):
        return None
    return Fixing(least=limit, tries_max=TRIES_MAX, rehearsals_max=REHEARSALS_MAX)


def as_patch(result: Result) -> str:
    """The fixes as a patch; what is left to do is written to standard error."""
    _say(_left(result))
    return diff_of(result.patches)


def written_to_disk(
    result: Result, display: OutputFlags, check_again: Callable[[Callable[[str], None]], Result]
) -> Result:
    """Write the fixes and say which; the result of what remains. It is checked again if a file was left alone."""
    done = list(written(result.patches))
    files: dict[str, list[str]] = {}
    for one in done:
        for what in one.patch.fixes if not one.error else ():
            files.setdefault(what, []).append(one.patch.file)
    said = [f"fixed: {what} ({', '.join(names)})" for what, names in files.items()]
    _say([*said, *(one.error for one in done if one.error), *_left(result)])
    if not any(one.error for one in done):
        return result.mended or result
    with terminal.progress_line(display) as progress:
        return check_again(progress)


def _left(result: Result) -> list[str]:
    """Fixes that are known and not in the patch."""
    applied = {what.partition(": ")[2] for patch in result.patches for what in patch.fixes}
    known = ((finding.rule, finding.fix) for finding in result.findings)
    left = [(rule, fix) for rule, fix in known if fix and (fix.edits or fix.proposed or fix.rejected)]
    return list(dict.fromkeys(f"not fixed: {rule}: {_why(fix)}" for rule, fix in left if fix.title not in applied))


def _why(fix: Fix) -> str:
    if fix.edits:
        return f"{fix.title}: unsafe: {fix.why_unsafe} (--unsafe-fixes)"
    if fix.rejected:
        return f"tried, not enough: {fix.rejected[0]}"
    return " ".join((fix.title, *fix.steps))


def _say(lines: Sequence[str]) -> None:
    sys.stdout.flush()
    sys.stderr.write("".join(f"{harmless(line)}\n" for line in lines))
