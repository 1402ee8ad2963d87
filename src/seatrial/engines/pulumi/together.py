"""Many steps at once, as one script: whoever can go on does, until all wait. Knows nothing of what the steps do.

Pulumi runs steps in parallel, in no order that anyone could rely on. On a fast cluster they come in the order in
which they were registered; on a slow one in the reverse, so that of any two steps that nothing orders both orders are
seen. But what judges others comes first on a slow one: whether it can answer matters only to those that come after
it. And on a slow cluster what is waited for comes true one by one, first that on which other steps wait: these then
begin while all the rest is not ready yet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec import Struct

from seatrial.engines import Stuck
from seatrial.engines.pulumi.steps import Again, Move
from seatrial.engines.script import Answer, Part, Wait
from seatrial.model.resource import Ref

ROUNDS_MAX = 100_000


class Job(Struct, frozen=True):
    """The steps of one resource."""

    urn: str
    move: Move[str]
    judges: bool = False
    """Whether objects may be refused as soon as this one is there."""


class Ending(Struct, frozen=True):
    """How it went: what failed, in its own words, and what is waited for in vain."""

    failed: tuple[tuple[str, str], ...] = ()
    stuck: Stuck | None = None
    waiting: tuple[str, ...] = ()
    """The resources that are waited for in vain."""


class Running:
    """Jobs that have begun and not ended, each with the answer it is owed, or with what it waits for."""

    def __init__(
        self, jobs: Iterable[Job], *, slow: bool, along: tuple[Ref, ...], holds_up: Callable[[str], bool]
    ) -> None:
        self.slow = slow
        self.along = along
        self.holds_up = holds_up
        self.jobs: dict[str, Job] = {}
        self.owed: dict[str, Answer | None] = {}
        self.blocked: dict[str, Wait | Again] = {}
        self.looked_twice = False
        """Whether all have looked again at what they wait for since anyone last got further."""
        self.add(jobs)

    def add(self, jobs: Iterable[Job]) -> None:
        for job in jobs:
            self.jobs[job.urn] = job
            self.owed[job.urn] = None

    def order(self) -> list[str]:
        urns = [urn for urn in self.jobs if urn not in self.blocked]
        if not self.slow:
            return urns
        urns.reverse()
        return sorted(urns, key=lambda urn: not self.jobs[urn].judges)

    def resume(self, urns: Iterable[str], answer: Answer) -> None:
        for urn in urns:
            del self.blocked[urn]
            self.owed[urn] = answer


def together(
    more: Callable[[set[str], bool], list[Job]],
    *,
    slow: bool,
    along: tuple[Ref, ...] = (),
    holds_up: Callable[[str], bool] = lambda urn: False,
) -> Part[Ending]:
    """Run jobs until none is left. `more` gives those that may begin, told which have ended, and whether any failed.

    `along` is what moves whenever anything is waited for: the pod that makes a Deployment available has made its
    Service reachable before, by fewer hands. `holds_up` says of a job whether others cannot begin before it has ended.
    """
    ended: set[str] = set()
    failed: list[tuple[str, str]] = []
    running = Running(more(ended, False), slow=slow, along=along, holds_up=holds_up)
    for _ in range(ROUNDS_MAX):
        over = yield from _advance(running)
        failed += [(urn, words) for urn, words in over.items() if words]
        ended |= {urn for urn, words in over.items() if not words}
        new = more(ended, bool(failed))
        running.add(new)
        if over or new:
            running.looked_twice = False
            continue
        if not running.jobs:
            return Ending(tuple(failed))
        stuck = yield from _wait(running)
        if stuck is not None:
            yield from _give_up(running, stuck)
            return Ending(tuple(failed), stuck, tuple(running.jobs))
    return Ending((*failed, ("", f"more than {ROUNDS_MAX} rounds")))


def _advance(running: Running) -> Part[dict[str, str]]:
    """Let everyone who does not wait go on until they do; those who ended, and their last words."""
    over: dict[str, str] = {}
    for urn in running.order():
        move = running.jobs[urn].move
        answer = running.owed[urn]
        try:
            while True:
                line = next(move) if answer is None else move.send(answer)
                if isinstance(line, Wait | Again):
                    running.blocked[urn] = line
                    break
                answer = yield line
        except StopIteration as end:
            over[urn] = str(end.value or "")
            del running.jobs[urn]
    return over


def _wait(running: Running) -> Part[Stuck | None]:
    """All wait. Those that only sleep wake up; on a slow cluster before anything that is awaited comes true."""
    asleep = [urn for urn, line in running.blocked.items() if isinstance(line, Again)]
    refs = tuple(dict.fromkeys(ref for urn in asleep for ref in running.blocked[urn].refs))
    if asleep and (running.slow or len(asleep) == len(running.blocked)):
        if refs:
            yield Wait(refs)
        running.resume(asleep, Answer(200))
        return None
    if running.slow and (yield from _one_by_one(running)):
        return None
    waited = tuple(dict.fromkeys(ref for line in running.blocked.values() for ref in line.refs))
    answer = yield Wait(_sorted(waited))
    if answer.stuck is not None and not asleep:
        if running.looked_twice:
            return answer.stuck
        running.looked_twice = True  # What one waits for may have come true by what another did.
    elif running.along:
        yield Wait(running.along)
    running.resume(list(running.blocked), Answer(200))
    return None


def _one_by_one(running: Running) -> Part[bool]:
    """Let one of those that wait have what it waits for; whether there is one that can."""
    for urn in sorted(running.blocked, key=lambda urn: not running.holds_up(urn)):
        answer = yield Wait(_sorted(running.blocked[urn].refs))
        if answer.stuck is None:
            if running.along:
                yield Wait(running.along)
            running.resume([urn], Answer(200))
            return True
    return False


def _give_up(running: Running, stuck: Stuck) -> Part[None]:
    """Time is up. Whoever has something to do about it, as Helm has, does it; that it failed is known."""
    for job in running.jobs.values():
        answer = Answer(200, stuck=stuck)
        try:
            while not isinstance(line := job.move.send(answer), Wait | Again):
                answer = yield line
        except StopIteration:
            continue


def _sorted(refs: tuple[Ref, ...]) -> tuple[Ref, ...]:
    return tuple(sorted(refs))
