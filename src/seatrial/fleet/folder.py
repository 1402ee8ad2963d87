"""Many charts in one check: which ones, several at a time, and one result."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from seatrial.accepted.ignoring import reported
from seatrial.accepted.policy import EVERYTHING, Policy
from seatrial.cache import Cache
from seatrial.fleet.checked import CheckedChart, Progress, WantedResults, check_one, checked, known, merged
from seatrial.model.errors import CannotContinue, NothingToCheck
from seatrial.model.options import CheckOptions
from seatrial.model.result import Result
from seatrial.sources.charts.folder import changed_charts, is_library
from seatrial.sources.files import reading_instead, shown
from seatrial.sources.fleetfile import charts_or_itself, holds_charts


def check_all(
    options: CheckOptions,
    since: str,
    progress: Progress,
    policy: Policy = EVERYTHING,
    *,
    cache: Cache | None = None,
    whole: bool = True,
) -> Result:
    """Check the inputs, and report what `policy` wants, without what the user ignores.

    Of a folder of charts, every chart is checked; with `since`, only what changed, upgraded from its old version.
    What comes from the `cache` has no timelines; `whole` says whether they are needed.
    """
    if options.fixing:
        options = replace(options, fixing=replace(options.fixing, wanted=partial(_wanted, policy)))
    needed = WantedResults(policy.limit if since else None, whole, None if whole else cache)
    done = _all(options, since, progress, needed)
    if done.mended is None:
        return reported(done, policy)
    with reading_instead({patch.file: patch.after for patch in done.patches}):
        mended = reported(done.mended, policy)
    return replace(reported(done, policy), mended=mended)


def _wanted(policy: Policy, result: Result) -> set[str]:
    """The fingerprints of what is reported."""
    return {finding.fingerprint for finding in reported(result, policy).findings}


def _all(options: CheckOptions, since: str, progress: Progress, needed: WantedResults) -> Result:
    if not since and not any(map(holds_charts, options.inputs)):
        return check_one(options, needed, progress)
    if options.compare or options.consumers:
        flag = "--compare" if options.compare else "--consumers"
        raise CannotContinue(f"{flag} needs one chart; {options.inputs[0]} is a folder of charts")
    if since and options.old:
        raise CannotContinue("--since and --from cannot be combined: --since upgrades each chart from its old version")
    if options.fixing and options.fixing.least:
        options = replace(options, fixing=None)  # Of many charts fixes are tried only if that is asked for.
    found = list(tasks(options, since))
    if not found:
        where = ", ".join(options.inputs)
        raise NothingToCheck(f"{where}: no chart changed since {since}" if since else f"{where}: only library charts")
    return merged(list(_checked(found, progress, needed)))


def tasks(options: CheckOptions, since: str = "") -> Iterator[CheckOptions]:
    """The options of each chart of a folder, and of each other input."""
    for path in options.inputs:
        if since:
            for chart, old in changed_charts(Path(path), since):
                if not is_library(chart):
                    yield replace(options, inputs=(shown(str(chart)),), folder=path, old=old)
        elif holds_charts(path):
            yield from (replace(options, inputs=(chart,), folder=path) for chart in charts_or_itself(path))
        else:
            yield replace(options, inputs=(path,))


def _checked(tasks: list[CheckOptions], progress: Progress, needed: WantedResults) -> Iterator[CheckedChart]:
    """The results in the order of the tasks. A process for each core: Helm and Python both use a whole one."""
    if len(tasks) == 1:
        yield checked(tasks[0], needed, progress)
        return
    found = [known(task, needed) for task in tasks]
    if None not in found:
        yield from filter(None, found)
        return
    from seatrial.fleet.crews import side_by_side  # Starting processes takes modules that nothing else needs.

    waiting = [number for number, one in enumerate(found) if one is None]
    work = partial(checked, needed=needed)
    for at, one in side_by_side(work, [tasks[number] for number in waiting]):
        found[waiting[at]] = one
        progress(f"{len(tasks) - found.count(None)} of {len(tasks)}: {one.name}")
    yield from filter(None, found)
