"""The steps of many resources at once, in the order of Pulumi's engine.

Pulumi runs steps in parallel, in no order that a program could rely on. On an ordinary cluster and on a fast one they
run in the order in which they were registered; on a slow one in reverse, so that of any two steps that nothing orders
both orders are seen. But webhook configurations come first on a slow one: whether they can answer matters only to what
comes after them. And on a slow cluster resources become ready one by one, first those that other steps depend on:
these then begin while all the rest is not ready yet. The first retry, after one second, is too early for pods unless
the cluster is a fast one.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from seatrial.engines import Stuck
from seatrial.engines.concurrent import Job, Sleep, Steps, abandon, awaited, interleave
from seatrial.engines.script import Answer, Error, Line, Part, Wait
from seatrial.model.resource import Ref


class ResourceSteps(Struct, frozen=True):
    """The steps of one resource."""

    urn: str
    steps: Steps[Error]
    judges: bool = False
    """Whether objects may be refused as soon as this one is there."""


class TasksEnd(Struct, frozen=True):
    """How it went: the errors by resource, and the wait that never ends."""

    failed: tuple[tuple[str, Error], ...] = ()
    stuck: Stuck | None = None
    waiting: tuple[str, ...] = ()
    """The resources that wait forever."""


def together(
    more: Callable[[set[str], bool], list[ResourceSteps]],
    *,
    pace: Answer,
    along: tuple[Ref, ...] = (),
    holds_up: Callable[[str], bool] = lambda urn: False,
) -> Part[TasksEnd]:
    """Run tasks until none is left. `more` gives those that may begin, by those that have ended and whether any failed.

    `pace` is the answer to a `Pause`: how fast the cluster is. `along` moves whenever anything is waited for: a pod's
    Endpoints update usually lands before the Deployment's Available condition. `holds_up` is whether other
    tasks cannot begin before this one has ended.
    """
    tasks = _Tasks(more, pace=pace, along=along, holds_up=holds_up)
    error = yield from interleave(tasks)
    failed = (*tasks.failed, *([("", Error(error))] if error else []))
    return TasksEnd(failed, tasks.stuck, tuple(job.of.urn for job in tasks.jobs) if tasks.stuck else ())


class _Tasks:
    """The `Schedule` of Pulumi's engine."""

    def __init__(
        self,
        more: Callable[[set[str], bool], list[ResourceSteps]],
        *,
        pace: Answer,
        along: tuple[Ref, ...],
        holds_up: Callable[[str], bool],
    ) -> None:
        self.more, self.along, self.holds_up = more, along, holds_up
        self.slow, self.instant = not pace.quick, pace.instant
        self.retried: set[str] = set()
        """Those that have retried once."""
        self.jobs: list[Job[ResourceSteps]] = []
        self.ended: set[str] = set()
        self.failed: list[tuple[str, Error]] = []
        self.stuck: Stuck | None = None

    def turn(self) -> Part[Job[ResourceSteps] | None]:
        if all(job.waits for job in self.jobs):
            self.jobs += [Job(task, task.steps) for task in self.more(self.ended, bool(self.failed))]
        if self.jobs and all(job.waits for job in self.jobs):
            yield from self._wait()
        if self.stuck:
            for job in self.jobs:
                yield from abandon(job, self.stuck)
            return None
        able = [job for job in self.jobs if not job.waits]
        if not able or not self.slow:
            return able[0] if able else None
        return next((job for job in reversed(able) if job.of.judges), able[-1])

    def on_line(self, job: Job[ResourceSteps], line: Line, answer: Answer) -> Part[bool]:
        yield from ()
        return False

    def on_end(self, job: Job[ResourceSteps], error: Error | None) -> Part[None]:
        if error:
            self.failed.append((job.of.urn, error))
        else:
            self.ended.add(job.of.urn)
        yield from ()

    def _wait(self) -> Part[None]:
        """All wait. Those that sleep wake up; on a slow cluster before anything that is waited for moves."""
        asleep = [job for job in self._by_patience() if isinstance(job.waits, Sleep)]
        early = [job for job in asleep if job.of.urn not in self.retried]
        self.retried |= {job.of.urn for job in early}
        if early and not (self.slow or self.instant):
            _wake(early)
            return
        if asleep and (self.slow or len(asleep) == len(self.jobs)):
            if refs := awaited(asleep):
                yield Wait(refs)
            _wake(asleep)
            return
        if self.slow and (yield from self._one_by_one()):
            return
        answer = yield Wait(tuple(sorted(awaited(self.jobs))))
        if answer.stuck is not None and not asleep and all(job.blocked for job in self.jobs):
            self.stuck = answer.stuck
            return
        if self.along and (answer.stuck is None or asleep):
            yield Wait(self.along)
        _wake(self.jobs, moved=answer.stuck is None)

    def _one_by_one(self) -> Part[bool]:
        """Wake the first whose wait moves, those first that others depend on; whether there is one."""
        for job in sorted(self._by_patience(), key=lambda job: not self.holds_up(job.of.urn)):
            if (yield Wait(tuple(sorted(job.refs)))).stuck is None:
                if self.along:
                    yield Wait(self.along)
                _wake([job], moved=True)
                return True
        return False

    def _by_patience(self) -> list[Job[ResourceSteps]]:
        """The one that has waited longest first."""
        return sorted(self.jobs, key=lambda job: job.since)


def _wake(jobs: list[Job[ResourceSteps]], *, moved: bool = False) -> None:
    for job in jobs:
        job.wake(moved=moved)
