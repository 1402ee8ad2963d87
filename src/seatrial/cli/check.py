"""`seatrial check`: rehearse everything, write the report, and set the exit code."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

from seatrial.cli.flags import (
    DEFAULT_OUTPUT,
    NO_FLAGS,
    OUTPUT,
    REHEARSAL,
    Inputs,
    OutputFlags,
    ReleaseFlags,
    flag,
    options,
)
from seatrial.model.errors import CannotContinue

if TYPE_CHECKING:
    from seatrial.cli.outputs import Target
    from seatrial.model.result import Result


def check(
    *inputs: Inputs,
    release: ReleaseFlags = NO_FLAGS,
    output: Annotated[tuple[str, ...], flag("--output", "-o", group=OUTPUT, value="FORMAT[=FILE]")] = (),
    fail_on: Annotated[str, flag("--fail-on", group=OUTPUT, value="WHAT")] = "",
    fail_on_removal: Annotated[bool, flag("--fail-on-removal", group=OUTPUT)] = False,
    exit_zero: Annotated[bool, flag("--exit-zero", group=OUTPUT)] = False,
    compare: Annotated[str, flag("--compare", group=REHEARSAL, value="OLD")] = "",
    since: Annotated[str, flag("--since", group=REHEARSAL, value="REF")] = "",
    rehearsal: Annotated[tuple[str, ...], flag("--rehearsal", group=REHEARSAL, value="FILE")] = (),
    display: OutputFlags = DEFAULT_OUTPUT,
) -> int:
    """Rehearse a release and report the steps that break or destroy something.

    Without --from: install, upgrade to the same chart, uninstall (for other engines their equivalents, e.g. up, up,
    destroy). With --from OLD: install OLD, upgrade, upgrade again, roll back, uninstall, reinstall; if OLD is a
    deployed release, the first step is the upgrade. A folder of charts is checked chart by chart. Every trial runs on
    an ordinary cluster, on a slow one and on a fast one. Each ci/*-values.yaml of a chart is rehearsed as well.

    Exit codes: 0 no finding reaches --fail-on, 1 a finding does, 2 the check failed (invalid arguments, a template that
    does not render, a missing tool), 3 nothing could be rehearsed. The first lines of the report list what was not
    rehearsed. A step that fails or hangs is always a finding: step-fails (ST001) if no rule explains it.

    Certainty: will happens on every cluster, likely on an ordinary one (pods, volumes and operators take seconds, the
    control plane takes milliseconds), may only on a very slow or a very fast one, or if a fact is not known.

    Parameters
    ----------
    output
        Format of the report: full, concise, json, sarif, junit, github, markdown or html (default: full). With =FILE
        it is written to a file, beside the report on standard output. Repeatable.
    fail_on
        Least severe finding that exits 1: a certainty (will, likely, may), a damage level (data-loss, outage,
        failed-deploy, nuisance), or both, as in may:outage (default: likely:failed-deploy).
    fail_on_removal
        Also exit 1 for what uninstall, delete or destroy does by design: data that it deletes, objects that it leaves.
    exit_zero
        Exit 0 whatever is found.
    compare
        Rehearse OLD (same kind of input, or git:REF) with the same trial, and report which findings and dependencies
        are gone, new and unchanged.
    since
        Check only the charts that changed since the merge base with REF, each upgraded from its version there; also
        the charts that use a changed library chart of the same folder. The input is a chart or a folder of charts.
    rehearsal
        Check a rehearsal that `seatrial run -o json` stored, without rehearsing anything. Repeatable: pass the
        ordinary, the lazy and the eager schedule of each engine.
    """
    from seatrial.cli import outputs, terminal, threshold

    targets = outputs.parse(output)
    limit = threshold.parse(fail_on, removal=fail_on_removal)
    if rehearsal and (inputs or compare or since or release != NO_FLAGS):
        raise CannotContinue("--rehearsal cannot be combined with an input or with flags that select what to rehearse")
    with terminal.progress_line(display) as progress:
        result = _stored(rehearsal) if rehearsal else _rehearsed(inputs, release, compare, since, progress)
    done = threshold.ended(result, limit, zero=exit_zero)
    outputs.write(targets, lambda target: _report(target, done, display))
    return done.exit.code if done.exit else 0


def _stored(files: tuple[str, ...]) -> Result:
    from seatrial.accepted.ignoring import without_ignored
    from seatrial.check import check_stored

    return without_ignored(check_stored(files), read=lambda file: None)  # Its files may be elsewhere.


def _rehearsed(
    inputs: tuple[str, ...], release: ReleaseFlags, compare: str, since: str, progress: Callable[[str], None]
) -> Result:
    from msgspec.structs import replace

    from seatrial.fleet import check_all

    return check_all(replace(options("check", inputs, release), compare=compare), since, progress)


def _report(target: Target, result: Result, display: OutputFlags) -> str:
    from seatrial.cli import terminal
    from seatrial.report import render

    return render(target.format, result, terminal.page(display, file=target.file))
