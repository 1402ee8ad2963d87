"""Engines side by side: how each step of the same trial ends."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from seatrial.evidence.compare.engine_differences import Seen
from seatrial.evidence.faults import failed_webhook, failure_of, missing_namespaces, unserved_kinds
from seatrial.evidence.moment import Moment, moments
from seatrial.model.refusal import Failure
from seatrial.model.result import Ending, Standing, Stop, Verdict
from seatrial.model.timeline import Event, Rehearsal

SCHEDULES = ("lazy", "eager")
BOTH: dict[str, Verdict] = {"failed": "fails", "hung": "hangs"}
ONLY_SLOW: dict[str, Verdict] = {"failed": "may fail", "hung": "may hang"}


def standings(seen: Sequence[Seen]) -> Iterator[Standing]:
    """One per engine, if several engines rehearse the same input."""
    found = list(standings_of(seen))
    if len(found) > 1:
        yield from found


def standings_of(seen: Sequence[Seen]) -> Iterator[Standing]:
    """One per engine for the case without extra values, if that is one trial in both schedules."""
    by_engine: dict[str, list[Seen]] = {}
    for one in seen:
        if not one.case.name:
            by_engine.setdefault(str(one.rehearsal.engine), []).append(one)
    if any(sorted(r.rehearsal.schedule for r in of) != sorted(SCHEDULES) for of in by_engine.values()):
        return
    for engine, of in by_engine.items():
        slow, quick = (next(r for r in of if r.rehearsal.schedule == s) for s in SCHEDULES)
        steps = [*moments(slow.rehearsal, slow.case)]
        endings = tuple(_ending(moment, quick.rehearsal) for moment in steps)
        yield Standing(engine, endings, _first_stop(steps))


def _ending(slow: Moment, quick: Rehearsal) -> Ending:
    late, soon = slow.ended, quick.steps[slow.index]
    if late.outcome != "ok":
        return Ending((BOTH if soon.outcome != "ok" else ONLY_SLOW)[late.outcome])
    if any(_is_made_later(slow.rehearsal, refused) for refused in _refusals(slow)):
        return Ending("ok at a retry")
    return Ending("ok", leaves=len(late.orphans))


def _first_stop(steps: Sequence[Moment]) -> Stop | None:
    """What stops the engine first: the rejected object and the reason, or else the engine's error."""
    for slow in steps:
        ended, refused = slow.ended, next(_refusals(slow), None)
        if ended.outcome == "ok" and refused is not None and _is_made_later(slow.rehearsal, refused):
            return Stop(_reason(slow, failure_of(refused), refused.message), str(refused.object))
        if ended.outcome == "ok":
            continue
        if refused is not None and refused.index in ended.failure.events:
            return Stop(_reason(slow, failure_of(refused), refused.message), str(refused.object))
        if ended.waits_for:
            return Stop(f"waits for {ended.waits_for[0]}")
        return Stop(_reason(slow, ended.failure, ended.error))
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
