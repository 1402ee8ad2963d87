"""Rehearses the plans of a check under every schedule, several at a time. Decides nothing about hazards."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from msgspec import Struct
from msgspec.structs import replace

from seatrial.model.engine import EngineId
from seatrial.model.timeline import SCHEDULES, Rehearsal, Schedule
from seatrial.plan.plan import Plan
from seatrial.play.heard import Heard
from seatrial.play.other_version import compared
from seatrial.play.rehearse import rehearse
from seatrial.play.with_wait import add_waits, without_wait

AT_ONCE = 4
Begun = Mapping[tuple[EngineId, str], Heard]
"""What Helm requested in the first step, by engine and case. It often installs an old version that no fix changes."""
NOT_BEGUN: Begun = {}


class PlayedPlan(Struct, frozen=True):
    """A plan, its rehearsals, and what Helm requested in them."""

    plan: Plan
    rehearsals: list[Rehearsal]
    heard: Heard

    @property
    def begun(self) -> tuple[tuple[EngineId, str], Heard]:
        return _named(self.plan), self.heard.of_step(0)


def played(
    planned: list[Plan],
    progress: Callable[[str], None],
    begun: Begun = NOT_BEGUN,
    schedules: Sequence[Schedule] = SCHEDULES,
) -> Iterator[PlayedPlan]:
    """Every plan rehearsed, in order; several at a time, since half of the time the client sleeps.

    Cases that differ in their name alone, such as one with an empty values file, are rehearsed once. The case with
    --wait follows the one without, as soon as that was rehearsed once.
    """

    def play(plan: Plan, first: Future[Heard], base: Future[Heard] | None) -> PlayedPlan:
        heard = begun[_named(plan)].of_step(0) if _named(plan) in begun else Heard()
        rehearsals = []
        try:
            if base is not None:
                add_waits(heard, plan, base.result())
            for schedule in schedules:
                rehearsals.append(compared(rehearsed(plan, schedule, heard, progress), plan))
                if not first.done():
                    first.set_result(heard.first())
        finally:
            if not first.done():
                first.set_result(Heard())  # This plan's error is reported, not that of one that waits for it.
        return PlayedPlan(plan, rehearsals, heard)

    nameless = [replace(plan, case=replace(plan.case, name="")) for plan in planned]
    same = [nameless.index(plan) for plan in nameless]
    once: dict[int, Future[Heard]] = {index: Future() for index in sorted(set(same))}
    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="rehearsal") as pool:
        bases = {index: without_wait(planned[index], planned[:index]) for index in once}
        after = {index: None if base is None else once[same[base]] for index, base in bases.items()}
        found = {index: pool.submit(play, planned[index], first, after[index]) for index, first in once.items()}
        try:
            for index, plan in zip(same, planned, strict=True):
                yield replace(found[index].result(), plan=plan)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def rehearsed(plan: Plan, schedule: Schedule, heard: Heard, progress: Callable[[str], None]) -> Rehearsal:
    progress(f"rehearse {plan.case.name or 'the release'} with {plan.engine.name}, {schedule}")
    return rehearse(plan, schedule, heard=heard)


def _named(plan: Plan) -> tuple[EngineId, str]:
    return plan.engine, plan.case.name
