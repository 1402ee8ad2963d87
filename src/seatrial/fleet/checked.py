"""One chart of many: its check, and many results as one."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from seatrial.accepted.baseline import with_known
from seatrial.cache import Cache
from seatrial.cache.kept import kept
from seatrial.model.errors import CannotContinue, NothingToCheck
from seatrial.model.finding import Finding, worst_first
from seatrial.model.limit import Limit, reaches
from seatrial.model.options import CheckOptions
from seatrial.model.result import NotRehearsed, Result

Progress = Callable[[str], None]


class WantedResults(Struct, frozen=True):
    """What is to be done with results."""

    new_from: Limit | None = None
    """If given, findings that reach it and that the old version of a chart has as well are known."""
    whole: bool = True
    """Whether a report shows whole timelines, and where each of their objects is defined."""
    cache: Cache | None = None
    """Where results are looked up first, and kept."""


class CheckedChart(Struct, frozen=True):
    """One chart: its result, or why it could not be checked."""

    name: str
    result: Result | None = None
    error: str = ""


def merged(found: list[CheckedChart]) -> Result:
    """One result; each chart is a case of it."""
    done = [(one.name, one.result) for one in found if one.result is not None]
    results = [result for _, result in done]
    named = [_named(name, result) for name, result in done]
    errors = tuple(NotRehearsed(one.error, one.name) for one in found if one.error)
    unseen = tuple(part for result in named for part in result.not_rehearsed)
    return Result(
        played=tuple(played for result in named for played in result.played),
        continued=tuple(played for result in named for played in result.continued),
        findings=tuple(sorted((f for result in named for f in result.findings), key=worst_first)),
        prerequisites=tuple(dict.fromkeys(one for result in results for one in result.prerequisites)),
        unknown_images=tuple(dict.fromkeys(image for result in results for image in result.unknown_images)),
        not_modelled=tuple(sorted({kind for result in results for kind in result.not_modelled})),
        objects=sum(result.objects for result in results),
        files=sum(result.files for result in results),
        excerpts={place: text for result in results for place, text in result.excerpts.items()},
        sources={ref: place for result in results for ref, place in result.sources.items()},
        differences=tuple(one for result in named for one in result.differences),
        gates=tuple(one for result in results for one in result.gates),
        interrupted=tuple(one for result in named for one in result.interrupted),
        explored=tuple(one for result in named for one in result.explored),
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


def _mended(one: CheckedChart) -> CheckedChart:
    return replace(one, result=one.result.mended or one.result) if one.result else one


def checked(options: CheckOptions, needed: WantedResults, progress: Progress = lambda said: None) -> CheckedChart:
    """One chart, or why it could not be checked."""
    name = options.inputs[0]
    try:
        result = _with_known(options, needed, lambda options: check_one(options, needed, progress))
    except (CannotContinue, NothingToCheck) as why:
        sentence = str(why)
        return CheckedChart(name, error=sentence if sentence.startswith(name) else f"{name}: {sentence}")
    return CheckedChart(name, result if needed.whole or options.fixing else kept(result))


def known(options: CheckOptions, needed: WantedResults) -> CheckedChart | None:
    """One chart, if all that it takes is in the cache."""

    def only_known(options: CheckOptions) -> Result:
        if needed.cache is None or (result := needed.cache.known(options)) is None:
            raise _NotKnown
        return result

    try:
        return CheckedChart(options.inputs[0], _with_known(options, needed, only_known))
    except _NotKnown:
        return None


def check_one(options: CheckOptions, needed: WantedResults, progress: Progress) -> Result:
    """The result of one check, from the cache if it is there."""

    def check(options: CheckOptions) -> Result:
        import seatrial.helm.sdk  # noqa: F401 - Go's runtime starts while Python imports everything else.
        from seatrial.check import check  # It takes longer than to look something up.

        return check(replace(options, locates_all=needed.whole), progress)

    if needed.cache is None:
        return check(options)
    return needed.cache.known(options) or needed.cache.checked(options, check)


class _NotKnown(Exception):
    """A result that is not in the cache."""


def _with_known(options: CheckOptions, needed: WantedResults, check: Callable[[CheckOptions], Result]) -> Result:
    """The result; what the old version of the chart has as well is known, if that is asked for."""
    result = check(options)
    limit = needed.new_from
    if limit is None or not options.old or not any(reaches(finding, limit) for finding in result.findings):
        return result
    cases = {finding.case for finding in result.findings}
    toggled = tuple(name for name in result.toggled if any(case.startswith(name) for case in cases))
    return with_known(result, _before(replace(options, toggled=toggled), check))


def _before(options: CheckOptions, check: Callable[[CheckOptions], Result]) -> tuple[Finding, ...]:
    """What is found in the old version of a chart, if that can be checked; with flags that show something toggled."""
    try:
        return check(replace(options, old="", instead=options.old)).findings
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
        interrupted=tuple(replace(one, case=called(one.case)) for one in result.interrupted),
        explored=tuple(replace(one, case=called(one.case)) for one in result.explored),
        not_rehearsed=tuple(replace(one, case=called(one.case)) for one in result.not_rehearsed),
    )
