"""Many charts in one check: which ones, several at a time, and one result."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from seatrial.accepted.baseline import with_known
from seatrial.accepted.ignoring import reported
from seatrial.accepted.policy import EVERYTHING, Policy
from seatrial.check import check
from seatrial.model.errors import CannotContinue, NothingToCheck
from seatrial.model.finding import Finding, worst_first
from seatrial.model.limit import Limit, reaches
from seatrial.model.result import Result
from seatrial.plan.plans import CheckOptions
from seatrial.sources import MANIFESTS, kind_of
from seatrial.sources.charts.folder import changed_charts, charts_in, is_folder_of_charts, is_library
from seatrial.sources.files import reading_instead, shown

Progress = Callable[[str], None]
SECONDS_TO_END = 5
"""For an interrupted worker to remove its temporary files."""


def check_all(options: CheckOptions, since: str, progress: Progress, policy: Policy = EVERYTHING) -> Result:
    """Check the inputs, and report what `policy` wants, without what the user ignores.

    Of a folder of charts, every chart is checked; with `since`, only what changed, upgraded from its old version.
    """
    if options.fixing:
        options = replace(options, fixing=replace(options.fixing, wanted=partial(_wanted, policy)))
    done = _all(options, since, progress, policy.limit)
    if done.mended is None:
        return reported(done, policy)
    with reading_instead({patch.file: patch.after for patch in done.patches}):
        mended = reported(done.mended, policy)
    return replace(reported(done, policy), mended=mended)


def _wanted(policy: Policy, result: Result) -> set[str]:
    """The fingerprints of what is reported."""
    return {finding.fingerprint for finding in reported(result, policy).findings}


def _all(options: CheckOptions, since: str, progress: Progress, limit: Limit) -> Result:
    if not since and not any(map(_is_fleet, options.inputs)):
        return check(options, progress)
    if options.compare or options.consumers:
        flag = "--compare" if options.compare else "--consumers"
        raise CannotContinue(f"{flag} needs one chart; {options.inputs[0]} is a folder of charts")
    if since and options.old:
        raise CannotContinue("--since and --from cannot be combined: --since upgrades each chart from its old version")
    if options.fixing and options.fixing.least:
        options = replace(options, fixing=None)  # Of many charts fixes are tried only if that is asked for.
    tasks = list(_tasks(options, since))
    if not tasks:
        where = ", ".join(options.inputs)
        raise NothingToCheck(f"{where}: no chart changed since {since}" if since else f"{where}: only library charts")
    return merged(list(_checked(tasks, progress, limit if since else None)))


def _is_fleet(path: str) -> bool:
    return kind_of(path) == MANIFESTS and is_folder_of_charts(path)


class Checked(Struct, frozen=True):
    """One chart: its result, or why it could not be checked."""

    name: str
    result: Result | None = None
    error: str = ""


def merged(found: list[Checked]) -> Result:
    """One result; each chart is a case of it."""
    done = [(one.name, one.result) for one in found if one.result is not None]
    results = [result for _, result in done]
    named = [_named(name, result) for name, result in done]
    errors = tuple(one.error for one in found if one.error)
    unseen = tuple(f"{name}: {words}" for name, result in done for words in _unseen(result))
    return Result(
        played=tuple(played for result in named for played in result.played),
        continued=tuple(played for result in named for played in result.continued),
        findings=tuple(sorted((f for result in named for f in result.findings), key=worst_first)),
        prerequisites=tuple(dict.fromkeys(one for result in results for one in result.prerequisites)),
        not_modelled=tuple(sorted({kind for result in results for kind in result.not_modelled})),
        objects=sum(result.objects for result in results),
        files=sum(result.files for result in results),
        excerpts={place: text for result in results for place, text in result.excerpts.items()},
        sources={ref: place for result in results for ref, place in result.sources.items()},
        differences=tuple(one for result in named for one in result.differences),
        gates=tuple(one for result in results for one in result.gates),
        notes=tuple(dict.fromkeys(note for result in results for note in result.notes)),
        not_rehearsed=(*errors, *unseen),
        pages={name: text for result in results for name, text in result.pages.items()},
        written=tuple(one for result in results for one in result.written),
        charts=len(found),
        broken=len(errors),
        patches=tuple(sorted({patch for result in results for patch in result.patches})),
        mended=merged(list(map(_mended, found))) if any(result.mended for result in results) else None,
        hollow=bool(results) and all(result.hollow for result in results),
    )


def _mended(one: Checked) -> Checked:
    return replace(one, result=one.result.mended or one.result) if one.result else one


def _tasks(options: CheckOptions, since: str) -> Iterator[CheckOptions]:
    for path in options.inputs:
        if since:
            for chart, old in changed_charts(Path(path), since):
                if not is_library(chart):
                    yield replace(options, inputs=(shown(str(chart)),), old=old)
        elif _is_fleet(path):
            charts = (chart for chart in charts_in(Path(path)) if not is_library(chart))
            yield from (replace(options, inputs=(shown(str(chart)),)) for chart in charts)
        else:
            yield replace(options, inputs=(path,))


def _checked(tasks: list[CheckOptions], progress: Progress, new_from: Limit | None) -> Iterator[Checked]:
    """The results in the order of the tasks. A process for each core: Helm and Python both use a whole one."""
    if len(tasks) == 1:
        yield _one(tasks[0], new_from, progress)
        return
    with _workers(min(len(tasks), os.cpu_count() or 1)) as pool:
        running: list[Future[Checked]] = [pool.submit(_one, task, new_from) for task in tasks]
        for number, (task, future) in enumerate(zip(tasks, running, strict=True), 1):
            progress(f"{number} of {len(tasks)}: {task.inputs[0]}")
            yield future.result()


@contextmanager
def _workers(count: int) -> Iterator[ProcessPoolExecutor]:
    """A pool whose processes end at once if this one is interrupted."""
    # The Go runtime of Helm does not survive a fork.
    pool = ProcessPoolExecutor(count, mp_context=get_context("spawn"), initializer=_leave_signals_to_the_parent)
    done = False
    try:
        yield pool
        done = True
    finally:
        workers = list(pool._processes.values())  # There is no public way before Python 3.14.
        pool.shutdown(wait=done, cancel_futures=True)
        if not done:
            _end(workers)


def _end(workers: Sequence[BaseProcess]) -> None:
    """End workers that may be in the middle of a check; each removes its temporary files first."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # A second Ctrl-C must not leave files behind.
    for worker in workers:
        worker.terminate()
    for worker in workers:
        worker.join(SECONDS_TO_END)
        if worker.is_alive():
            worker.kill()
    signal.signal(signal.SIGINT, before)


def _leave_signals_to_the_parent() -> None:
    """In a worker: Ctrl-C reaches the parent, which ends its workers with SIGTERM; their check is interrupted then."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.default_int_handler)


def _one(options: CheckOptions, new_from: Limit | None, progress: Progress = lambda said: None) -> Checked:
    """One chart; with `new_from`, what its old version has as well is known."""
    name = options.inputs[0]
    try:
        result = check(options, progress)
        if new_from and options.old and any(reaches(finding, new_from) for finding in result.findings):
            result = with_known(result, _before(options, progress))
        return Checked(name, result)
    except (CannotContinue, NothingToCheck) as why:
        sentence = str(why)
        return Checked(name, error=sentence if sentence.startswith(name) else f"{name}: {sentence}")


def _before(options: CheckOptions, progress: Progress) -> tuple[Finding, ...]:
    """What is found in the old version of a chart, if that can be checked."""
    try:
        return check(replace(options, old="", instead=options.old), progress).findings
    except (CannotContinue, NothingToCheck):
        return ()


def _named(name: str, result: Result) -> Result:
    """A result whose cases are named after the chart."""

    def called(case: str) -> str:
        return f"{name} ({case})" if case else name

    return replace(
        result,
        played=tuple(replace(one, case=called(one.case)) for one in result.played),
        continued=tuple(replace(one, case=called(one.case)) for one in result.continued),
        findings=tuple(replace(one, case=called(one.case)) for one in result.findings),
        differences=tuple(replace(one, case=called(one.case)) for one in result.differences),
    )


def _unseen(result: Result) -> Iterator[str]:
    if result.missing_dependencies:
        yield f"dependencies that are not in charts/: {', '.join(result.missing_dependencies)}"
    yield from result.not_rehearsed
