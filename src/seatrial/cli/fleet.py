"""`seatrial fleet`: many trials in one run, on this machine or on a Dask cluster."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated

from seatrial.cli.flags import (
    ALL_FINDINGS,
    DEFAULT_OUTPUT,
    NO_FLAGS,
    OUTPUT,
    FindingFlags,
    Heading,
    OutputFlags,
    ReleaseFlags,
    flag,
    options,
    positional,
    split,
)
from seatrial.model.errors import CannotContinue

if TYPE_CHECKING:
    from seatrial.cli.outputs import ReportTarget
    from seatrial.model.fleet import Fleet

WHERE = Heading("Where it runs", 0)
INPUTS = "Fleet files; charts, folders of charts, trial files, manifests, Pulumi programs; quoted globs ('charts/*')."


def fleet(
    *inputs: Annotated[str, positional(INPUTS)],
    on: Annotated[str, flag("--on", group=WHERE, value="tcp://HOST:PORT")] = "",
    processes: Annotated[int, flag("--processes", group=WHERE, value="NUMBER")] = 0,
    no_cache: Annotated[bool, flag("--no-cache", group=WHERE)] = False,
    release: ReleaseFlags = NO_FLAGS,
    output: Annotated[tuple[str, ...], flag("--output", "-o", group=OUTPUT, value="FORMAT[=FILE]")] = (),
    findings: FindingFlags = ALL_FINDINGS,
    display: OutputFlags = DEFAULT_OUTPUT,
) -> int:
    """Rehearse many trials: inputs x old versions x values x engines x Kubernetes versions.

    A fleet file lists them (docs/fleets.md); flags hold for what it does not list. --engine may be repeated, and
    --kube-version may be a list (1.31,1.34): one trial for each. A trial that cannot be rehearsed is reported, and
    the others go on.

    Exit codes: as check; 1 if a trial has a finding that reaches --fail-on, 2 if none has but a trial could not be
    rehearsed.

    Parameters
    ----------
    on
        Address of a Dask scheduler: its workers rehearse the trials. Files are sent along. Needs seatrial[fleet].
    processes
        Processes on this machine (default: one for each core).
    no_cache
        Rehearse everything, even what was rehearsed before and did not change.
    output
        full, concise, json, sarif, junit, github, markdown or html (default: full); with =FILE to a file. Repeatable.
    """
    from msgspec.structs import replace

    from seatrial import cache
    from seatrial.accepted import baseline
    from seatrial.accepted.policy import policy_of, with_configuration
    from seatrial.cli import outputs, terminal, threshold
    from seatrial.fleet import dask
    from seatrial.fleet.checked import WantedResults
    from seatrial.fleet.crews import here
    from seatrial.fleet.trials import rehearsed, tasks_of
    from seatrial.model.verdict import ended, exit_of
    from seatrial.sources.configuration import configuration_of

    targets = outputs.parse(output)
    if on and processes:
        raise CannotContinue("--on and --processes cannot be combined: the scheduler has its own workers")
    asked = options("fleet", inputs, release)
    versions = split((release.kube_version,)) if release.kube_version else ()
    tasks = tasks_of(replace(asked, kube_version=""), versions)
    configured = configuration_of(task.trial.input for task in tasks)
    limit = threshold.limit_of(findings, configured)
    policy = replace(policy_of(split(findings.select), split(findings.ignore), configured), limit=limit)
    known = baseline.read(findings.baseline) if findings.baseline else None
    tasks = [replace(task, options=with_configuration(task.options, configured)) for task in tasks]
    with terminal.progress_line(display) as progress:
        needed = WantedResults(whole=False, cache=None if no_cache else cache.opened())
        crew = dask.on(on, needed) if on else here(needed, processes)
        done = rehearsed(tasks, crew, policy, partial(exit_of, limit=limit), progress)
    result = done.result
    if known is not None:
        result = baseline.with_baseline(result, findings.baseline, known)
    if file := findings.write_baseline:
        outputs.write_file(file, baseline.written(result.findings), f"--write-baseline {file}: cannot write it")
        result = baseline.with_known(result, result.findings)
    done = replace(done, result=ended(result, limit, zero=findings.exit_zero))
    outputs.write(targets, lambda target: _report(target, done, display))
    return done.result.exit.code if done.result.exit else 0


def _report(target: ReportTarget, done: Fleet, display: OutputFlags) -> str:
    from seatrial.cli import terminal
    from seatrial.report import fleet as report
    from seatrial.report import render

    page = terminal.page(display, file=target.file)
    if target.format == "full":
        return report.render(done, page)
    if target.format == "json":
        return report.as_json(done)
    return render(target.format, done.result, page)
