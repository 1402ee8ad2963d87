"""Engines side by side: how each step of the same trial ends."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from seatrial.evidence.compare.engine_differences import ComparedRehearsal
from seatrial.evidence.faults import failed_webhook, failure_of, missing_namespaces, unserved_kinds
from seatrial.evidence.moment import Moment, moments
from seatrial.model.refusal import Failure
from seatrial.model.result import Ending, Standing, Stop, Verdict
from seatrial.model.timeline import SCHEDULES, Event, Rehearsal

ALL: dict[str, Verdict] = {"failed": "fails", "hung": "hangs"}
ORDINARILY: dict[str, Verdict] = {"failed": "likely fails", "hung": "likely hangs"}
AT_A_BOUND: dict[str, Verdict] = {"failed": "may fail", "hung": "may hang"}


def standings(seen: Sequence[ComparedRehearsal]) -> Iterator[Standing]:
    """One per engine, if several engines rehearse the same input."""
    found = list(standings_of(seen))
    if len(found) > 1:
        yield from found


def standings_of(seen: Sequence[ComparedRehearsal]) -> Iterator[Standing]:
    """One per engine for the case without extra values, if that is one trial under every schedule."""
    by_engine: dict[str, list[ComparedRehearsal]] = {}
    for one in seen:
        if not one.case.name:
            by_engine.setdefault(str(one.rehearsal.engine), []).append(one)
    if any(sorted(r.rehearsal.schedule for r in of) != sorted(SCHEDULES) for of in by_engine.values()):
        return
    for engine, of in by_engine.items():
        trial = [next(r for r in of if r.rehearsal.schedule == schedule) for schedule in SCHEDULES]
        steps = [[*moments(one.rehearsal, one.case)] for one in trial]
        stops = map(_first_stop, steps)
        yield Standing(engine, tuple(map(_ending, zip(*steps, strict=True))), next(filter(None, stops), None))


def _ending(moments: tuple[Moment, ...]) -> Ending:
    """How a step ends, by its moment under each schedule, the ordinary one first."""
    shown = moments[0].ended
    ends = [moment.ended.outcome for moment in moments if moment.ended.outcome != "ok"]
    if shown.outcome != "ok":
        return Ending((ALL if len(ends) == len(moments) else ORDINARILY)[shown.outcome])
    if ends:
        return Ending(AT_A_BOUND[ends[0]])
    if any(_is_made_later(moment.rehearsal, refused) for moment in moments for refused in _refusals(moment)):
        return Ending("ok at a retry")
    return Ending("ok", leaves=len(shown.orphans))


def _first_stop(steps: Sequence[Moment]) -> Stop | None:
    """What stops the engine first: the rejected object and the reason, or else the engine's error."""
    for moment in steps:
        ended, refused = moment.ended, next(_refusals(moment), None)
        if ended.outcome == "ok" and refused is not None and _is_made_later(moment.rehearsal, refused):
            return Stop(_reason(moment, failure_of(refused), refused.message), str(refused.object))
        if ended.outcome == "ok":
            continue
        if refused is not None and refused.index in ended.failure.events:
            return Stop(_reason(moment, failure_of(refused), refused.message), str(refused.object))
        if ended.waits_for:
            return Stop(f"waits for {ended.waits_for[0]}")
        return Stop(_reason(moment, ended.failure, ended.error))
    return None


def _refusals(moment: Moment) -> Iterator[Event]:
    written = (e for e in moment.events() if e.actor in moment.rehearsal.actors and e.verb != "delete")
    return (event for event in written if event.effect == "refused")


def _is_made_later(rehearsal: Rehearsal, refused: Event) -> bool:
    """Whether the engine retried in the same step and succeeded."""
    done = ("created", "changed")
    later = (e for e in rehearsal.of_step(refused.step) if e.index > refused.index and e.object == refused.object)
    return any(event.effect in done and event.actor == refused.actor for event in later)


def _reason(moment: Moment, failure: Failure, words: str) -> str:
    """What an API server's or an engine's error comes down to."""
    if webhook := failed_webhook(moment.rehearsal, failure):
        return f'failed calling webhook "{webhook}"'
    for kind in unserved_kinds(failure):
        return f'no matches for kind "{kind.kind}"'
    for home in missing_namespaces(moment.rehearsal, failure):
        return f'namespaces "{home.name}" not found'
    return words.strip().partition("\n")[0]
