"""`seatrial check`: rehearse everything, write the report, and set the exit code."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, NamedTuple

from seatrial.cli.cluster import CURRENT, FROM_CLUSTER, LIVE, ClusterFlags, connect, started_from
from seatrial.cli.flags import (
    ALL_FINDINGS,
    DEFAULT_OUTPUT,
    NO_FAULTS,
    NO_FIXES,
    NO_FLAGS,
    OUTPUT,
    REHEARSAL,
    FaultFlags,
    FindingFlags,
    FixFlags,
    OutputFlags,
    ReleaseFlags,
    flag,
    options,
    positional,
    refuse_flags,
    split,
)
from seatrial.model.errors import CannotContinue

if TYPE_CHECKING:
    from collections.abc import Callable

    from seatrial.accepted.policy import Policy
    from seatrial.cli.outputs import ReportTarget
    from seatrial.model.options import CheckOptions
    from seatrial.model.result import Result


def check(
    *inputs: Annotated[str, positional()],
    release: ReleaseFlags = NO_FLAGS,
    output: Annotated[tuple[str, ...], flag("--output", "-o", group=OUTPUT, value="FORMAT[=FILE]")] = (),
    findings: FindingFlags = ALL_FINDINGS,
    compare: Annotated[str, flag("--compare", group=REHEARSAL, value="OLD")] = "",
    since: Annotated[str, flag("--since", group=REHEARSAL, value="REF")] = "",
    rehearsal: Annotated[tuple[str, ...], flag("--rehearsal", group=REHEARSAL, value="FILE")] = (),
    faults: FaultFlags = NO_FAULTS,
    live: Annotated[bool, flag("--live", group=LIVE, about=FROM_CLUSTER)] = False,
    cluster: ClusterFlags = CURRENT,
    fixing: FixFlags = NO_FIXES,
    no_cache: Annotated[bool, flag("--no-cache", group=REHEARSAL)] = False,
    display: OutputFlags = DEFAULT_OUTPUT,
) -> int:
    """Rehearse a release and report the steps that break or destroy something.

    Without --from: install, upgrade to the same chart, uninstall (for other engines their equivalents, e.g. up, up,
    destroy). With --from OLD: install OLD, upgrade, upgrade again, roll back, uninstall, reinstall; if OLD is a
    deployed release, the first step is the upgrade. A folder of charts is checked chart by chart. Every trial runs on
    an ordinary cluster, on a slow one and on a fast one. Each ci/*-values.yaml of a chart is rehearsed as well, and
    instead of default values that do not render, render nothing or are placeholders.

    Exit codes: 0 no finding reaches --fail-on, 1 a finding does, 2 the check failed (invalid arguments, a template that
    does not render, a missing tool), 3 nothing could be rehearsed. The first lines of the report list what was not
    rehearsed, which exits 1 with --fail-on-unrehearsed. A step that fails or hangs is always a finding: step-fails
    (ST001) if no rule explains it.

    seatrial.yaml, in the folder of the input or in a parent folder, sets defaults for some of the flags.

    Certainty of a finding: "will" if it happens on every cluster; "likely" if on an ordinary one (pods, volumes and
    operators take seconds, the control plane takes milliseconds); "may" if only on a very slow or a very fast one, or
    if a fact is not known.

    Parameters
    ----------
    output
        Format of the report: full, concise, json, sarif, junit, github, markdown or html (default: full). With =FILE
        it is written to a file, in addition to the report on standard output. Repeatable.
    compare
        Rehearse OLD (same kind of input, or git:REF) with the same trial, and report which findings and dependencies
        are gone, new and unchanged. Only new ones exit 1.
    since
        Check only the charts that changed since the merge base with REF, each upgraded from its version there; also
        the charts that use a changed library chart of the same folder. The input is a chart or a folder of charts.
        Only findings that the old version does not have exit 1.
    rehearsal
        Check a rehearsal that `seatrial run -o json` stored, without rehearsing anything. Repeatable: pass the
        ordinary, the lazy and the eager schedule of each engine.
    no_cache
        Rehearse again even if nothing has changed since the last check. Results are kept in $XDG_CACHE_HOME/seatrial
        (default: ~/.cache/seatrial); the cache contains no objects.
    """
    from seatrial.cli import fixes, outputs, terminal

    targets = outputs.parse(output)
    fixes.refuse(fixing, output=bool(output), other=bool(compare or rehearsal))
    if rehearsal and (inputs or compare or since or live or release != NO_FLAGS):
        raise CannotContinue("--rehearsal cannot be combined with an input or with flags that select what to rehearse")
    refuse_flags("check", inputs)
    seen = started_from(cluster, live=live)
    other = BesideInputs(compare, since, rehearsal, fixing, targets, faults, no_cache or live, seen)
    done = _checked(inputs, release, findings, other, display)
    if fixing.diff:
        terminal.write(fixes.as_patch(done))
    else:
        outputs.write(targets, lambda target: _report(target, done, display))
    return done.exit.code if done.exit else 0


class BesideInputs(NamedTuple):
    """What to rehearse beside the inputs, or instead of them, and what for."""

    compare: str
    since: str
    rehearsal: tuple[str, ...]
    fixing: FixFlags
    targets: tuple[ReportTarget, ...]
    faults: FaultFlags = NO_FAULTS
    no_cache: bool = False
    cluster: ClusterFlags | None = None
    """The cluster to start from."""


def _checked(
    inputs: tuple[str, ...], release: ReleaseFlags, findings: FindingFlags, other: BesideInputs, display: OutputFlags
) -> Result:
    from msgspec.structs import replace

    from seatrial import cache
    from seatrial.accepted import baseline
    from seatrial.accepted.policy import policy_of, with_configuration
    from seatrial.cli import fixes, outputs, snapshot, terminal, threshold
    from seatrial.fleet.folder import check_all
    from seatrial.model.verdict import ended
    from seatrial.sources.configuration import NONE, configuration_of

    configured = NONE if other.rehearsal else configuration_of(inputs)
    limit = threshold.limit_of(findings, configured)
    policy = replace(policy_of(split(findings.select), split(findings.ignore), configured), limit=limit)
    known = baseline.read(findings.baseline) if findings.baseline else None
    with terminal.progress_line(display) as progress:
        if other.rehearsal:
            result = _stored(other.rehearsal, policy)
        else:
            asked = options("check", inputs, release)
            faults = other.faults
            plain = replace(
                asked,
                compare=other.compare,
                interrupted=faults.interrupted,
                every_write=faults.every_write,
                explore=faults.explore,
            )
            given = _started_from(with_configuration(plain, configured), other, progress)
            trying = fixes.asked(other.fixing, limit, other.targets)
            whole = any(target.format == "html" for target in other.targets)
            kept = None if whole or other.no_cache else cache.opened(beside=policy)
            trial = replace(given, fixing=trying)
            result = check_all(trial, other.since, progress, policy, cache=kept, whole=whole)
            if kept is not None:
                kept.trim()
    if not other.rehearsal and given.snapshot is not None:
        snapshot.report_denials(given.snapshot.denied)
    if other.fixing.fix:
        again = partial(check_all, given, other.since, policy=policy)
        result = fixes.written_to_disk(result, display, again)
    if known is not None:
        result = baseline.with_baseline(result, findings.baseline, known)
    if file := findings.write_baseline:
        outputs.write_file(file, baseline.written(result.findings), f"--write-baseline {file}: cannot write it")
        result = baseline.with_known(result, result.findings)
    return ended(result, limit, zero=findings.exit_zero)


def _started_from(given: CheckOptions, other: BesideInputs, progress: Callable[[str], None]) -> CheckOptions:
    """The options with what the cluster has now, if that is asked for."""
    if other.cluster is None:
        return given
    from msgspec.structs import replace

    from seatrial.cli.snapshot import taken
    from seatrial.fleet.folder import tasks

    with connect(other.cluster, given.namespace) as client:
        found = taken(client, tasks(given, other.since), progress)
    return replace(given, snapshot=found, namespace=given.namespace or client.namespace)


def _stored(files: tuple[str, ...], policy: Policy) -> Result:
    from seatrial.accepted.ignoring import reported
    from seatrial.check import check_stored

    return reported(check_stored(files), policy, read=lambda file: None)  # Its files may be elsewhere.


def _report(target: ReportTarget, result: Result, display: OutputFlags) -> str:
    from seatrial.cli import terminal
    from seatrial.report import render

    return render(target.format, result, terminal.page(display, file=target.file))
