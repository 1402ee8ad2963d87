"""Several scripts as one: each job goes on until it waits, then another does. Knows nothing of what the scripts do.

Which job goes next, and what is waited for when all wait, is up to the engine: its `Schedule`.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import Any, Generic, Protocol, TypeVar

from msgspec import Struct

from seatrial.engines import Stuck
from seatrial.engines.act import HelmAct
from seatrial.engines.script import WRITES, Answer, Command, Line, Part, Say, Wait, next_line
from seatrial.model.resource import Ref

ROUNDS_MAX = 1_000_000


class Sleep(Struct, frozen=True):
    """Try again after a while; `refs` have to move meanwhile for that to help."""

    refs: tuple[Ref, ...] = ()


T = TypeVar("T")
Steps = Generator[Line | Sleep, Answer, T]
"""The script of a job: a `Part` that may also sleep."""


class Job(Struct, Generic[T], eq=False):
    """One script among others. It waits, or is owed an answer."""

    of: T
    """What the schedule knows it by."""
    script: Steps[Any]
    waits: Wait | Sleep | None = None
    answer: Answer | None = None
    moved: bool = True
    """Whether anything it waited for has moved since it last looked; a new job is yet to look."""
    blocked: bool = False
    """Whether nothing has happened anywhere since it last looked."""
    since: int = 0
    """The round in which it last went on; 0 before it has."""

    @property
    def refs(self) -> tuple[Ref, ...]:
        return self.waits.refs if self.waits else ()

    def wake(self, stuck: Stuck | None = None, *, moved: bool = False) -> None:
        """End its wait: it looks when it goes on."""
        self.waits, self.answer, self.moved = None, Answer(200, stuck=stuck), moved


class Schedule(Protocol[T]):
    """What an engine decides about jobs that run side by side."""

    jobs: list[Job[T]]
    """Those that have not ended."""

    def turn(self) -> Part[Job[T] | None]:
        """The job that goes on now, woken if it waited; None when there is none left."""
        ...

    def on_line(self, job: Job[T], line: Line, answer: Answer) -> Part[bool]:
        """React to a line that was carried; whether the job lets others go first."""
        ...

    def on_end(self, job: Job[T], result: Any) -> Part[None]: ...


def interleave(schedule: Schedule[T]) -> Part[str]:
    """Let jobs go on one at a time until the schedule has none left; an error if that takes too long."""
    for round_ in range(1, ROUNDS_MAX + 1):
        job = yield from schedule.turn()
        if job is None:
            return ""
        job.since = round_
        if (yield from _advance(job, schedule)):
            for other in schedule.jobs:
                other.blocked = False
        else:
            job.blocked = True
    return f"more than {ROUNDS_MAX} rounds"


def give_up(job: Job[T]) -> Part[None]:
    """Wake a job with the answer that its wait never ends."""
    answer = yield Wait(job.refs)
    job.wake(answer.stuck or Stuck("nothing happens any more", job.refs, ()))


def abandon(job: Job[T], stuck: Stuck) -> Part[None]:
    """Cancel a job that waits: carry what it still does about it, and ignore how it ends."""
    answer = Answer(200, stuck=stuck)
    try:
        while not isinstance(line := next_line(job.script, answer), Wait | Sleep):
            answer = yield line
    except StopIteration:
        return


def awaited(jobs: Iterable[Job[T]]) -> tuple[Ref, ...]:
    """All that these jobs wait for."""
    return tuple(dict.fromkeys(ref for job in jobs for ref in job.refs))


def _advance(job: Job[T], schedule: Schedule[T]) -> Part[bool]:
    """Carry a job's lines until it waits, lets others go first or ends; whether anything happened."""
    happened, job.moved = job.moved, False
    while True:
        try:
            line = next_line(job.script, job.answer)
        except StopIteration as end:
            schedule.jobs.remove(job)
            yield from schedule.on_end(job, end.value)
            return True
        if isinstance(line, Wait | Sleep):
            job.waits = line
            return happened
        job.answer = yield line
        happened = happened or _acts(line)
        if (yield from schedule.on_line(job, line, job.answer)):
            return True


def _acts(line: Line) -> bool:
    return isinstance(line, Say | HelmAct) or (isinstance(line, Command) and line.verb in WRITES)
