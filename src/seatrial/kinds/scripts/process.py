"""The program of a container in time: what it did, what it waits for, and until when. Knows no shell and no kubectl.

A program is run again from its start whenever something that it read changes. What it has done before is in its
journal, so that nothing is done twice and nothing that it saw is seen differently. Where it sleeps, the run looks ahead
as if nothing changed: that tells when it goes on by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from msgspec import Struct

from seatrial.kinds import Call
from seatrial.model.refusal import Refusal

T = TypeVar("T")
SENDS_MAX = 500
PAUSE_SECONDS = 10.0
PAUSE_SECONDS_MAX = 300.0
"""Before a container is started again: the back-off of a kubelet."""


class Endless(Exception):
    """It waits for something, and only a change of the cluster ends that."""


class Undecided(Exception):
    """Only a real run would tell."""


class Later(Exception):
    """It is asleep before it changes something."""


class Sending(Exception):
    """It sends a request."""

    def __init__(self, call: Call) -> None:
        self.call = call


class TimedOut(Exception):
    """`timeout` ends it."""

    def __init__(self, at_seconds: float) -> None:
        self.at_seconds = at_seconds


class Variables(Struct, frozen=True):
    """The environment of a container."""

    known: dict[str, str]
    names: frozenset[str] | None
    """All variables that the pod sets; None where not even their names are known."""


class Done(Struct, frozen=True):
    """What a program saw or got as an answer, and when."""

    at_seconds: float
    result: Any


class Journal(Struct):
    """What a program has done since it was started."""

    started_seconds: float
    done: list[Done] = []
    ahead: list[Done] = []
    """What it will see if nothing changes."""
    until_seconds: float | None = None
    """When it goes on, or ends, by itself."""
    asleep_seconds: float | None = None
    """Until when it sleeps, whatever changes; None where it has not yet run."""
    code: int | None = None
    """With which it has ended; None while it runs."""
    failures: int = 0
    ended_seconds: float = 0.0
    variables: Variables | None = None
    """The environment with which it was started."""

    @property
    def pause_seconds(self) -> float:
        """How long after its last failure it is started again."""
        return min(PAUSE_SECONDS * float(2 ** max(0, self.failures - 1)), PAUSE_SECONDS_MAX)

    def catch_up(self, now_seconds: float) -> None:
        """What lay ahead of the last run has happened by now, up to this moment."""
        passed = [one for one in self.ahead if one.at_seconds < now_seconds]
        self.done += passed
        self.ahead, self.until_seconds = [], None

    def restart(self, now_seconds: float) -> None:
        """The container is started again after a failure."""
        self.started_seconds, self.done, self.ahead, self.until_seconds = now_seconds, [], [], None
        self.code, self.variables = None, None


class Run:
    """One run of a program: replays its journal, then goes on."""

    def __init__(self, journal: Journal, now_seconds: float, *, is_free: bool = False) -> None:
        """`is_free`: no cluster waits for it, so that time passes as the program likes."""
        self._is_free = is_free
        self._journal = journal
        self._done = journal.done
        self._now = now_seconds
        self._index = 0
        self._kept: int | None = None
        self._limits: list[float] = []
        self.at_seconds = journal.started_seconds
        self.turn: int | None = None
        """Where the current turn of the innermost loop began; None outside of loops."""
        self.new: list[Done] = []
        self._looked_seconds: float | None = None
        """When it first looked at something that may change before that."""

    @property
    def asleep_seconds(self) -> float:
        """Until when it sleeps, whatever changes."""
        return self.at_seconds if self._looked_seconds is None else min(self._looked_seconds, self.at_seconds)

    @property
    def place(self) -> int:
        """How much it has seen and sent so far."""
        return self._index

    @property
    def is_fresh(self) -> bool:
        """Whether the journal is at its end: what it sees from here on is as it is now."""
        return self._index >= len(self._done)

    @property
    def is_ahead(self) -> bool:
        """Whether this is a look ahead in time."""
        return self._kept is not None

    @property
    def since_start_seconds(self) -> float:
        return self.at_seconds - self._journal.started_seconds

    def variables(self, read: Callable[[], Variables]) -> Variables:
        """The environment with which the program was started."""
        if self._journal.variables is None:
            self._journal.variables = read()
        return self._journal.variables

    def look(self, read: Callable[[], T]) -> T:
        """What the program sees; once seen it stays so."""
        if self._index < len(self._done):
            seen: T = self._recall()
            return seen
        self._arrive()
        if self.is_ahead:
            self._look_ahead()
        return self._keep(read())

    def send(self, call: Call) -> Refusal | None:
        """Send a request, and the API server's refusal."""
        if self._index < len(self._done):
            answer: Refusal | None = self._recall()
            return answer
        if self.is_ahead:
            raise Later
        if sum(one.result is None or isinstance(one.result, Refusal) for one in self._done) > SENDS_MAX:
            raise Undecided
        raise Sending(call)

    def sleep(self, seconds: float) -> None:
        self._advance(self.at_seconds + seconds)

    def until(self, holds: Callable[[], bool], timeout_seconds: float | None) -> bool:
        """Wait until something holds; whether it did in time."""
        start: float = self.look(lambda: self.at_seconds)
        if self._index < len(self._done):
            held: bool = self._recall()
            return held
        self._arrive()
        if holds():
            return self._keep(True)
        self._look_ahead()
        if timeout_seconds is None or timeout_seconds == float("inf"):
            self.block()
        self._advance(start + (timeout_seconds or 0), kept=self._index)
        return self._keep(False)

    def block(self) -> None:
        """It goes on only after a change."""
        self._look_ahead()
        if self._kept is None and not self._is_free:
            self._kept = self._index if self.turn is None else self.turn
        raise Endless

    def limited(self, seconds: float, run: Callable[[], T]) -> T:
        """Run something that may take so long; raises `TimedOut` after that."""
        end = self.at_seconds + seconds
        self._limits.append(end)
        turn = self.turn
        try:
            return run()
        except Endless:
            self._limits.pop()
            self._limits.append(float("inf"))
            self._advance(end)
            raise TimedOut(end) from None
        finally:
            self._limits.pop()
            self.turn = turn

    def close(self) -> None:
        """Put down what this run has seen: what is settled, and what lies ahead."""
        place = len(self._journal.done)
        settled = len(self.new) if self._kept is None else max(0, self._kept - place)
        self._journal.done += self.new[:settled]
        self._journal.ahead = self.new[settled:]

    def _recall(self) -> Any:
        one = self._done[self._index]
        self._index += 1
        self.at_seconds = max(self.at_seconds, one.at_seconds)
        return one.result

    def _arrive(self) -> None:
        """At the end of its journal it is now."""
        if not self.is_ahead and not self._is_free:
            self.at_seconds = max(self.at_seconds, self._now)

    def _look_ahead(self) -> None:
        if self._looked_seconds is None:
            self._looked_seconds = self.at_seconds

    def _keep(self, result: T) -> T:
        self.new.append(Done(self.at_seconds, result))
        self._index += 1
        return result

    def _advance(self, to_seconds: float, kept: int | None = None) -> None:
        limit = min(self._limits, default=float("inf"))
        late = to_seconds > limit
        to = max(self.at_seconds, min(to_seconds, limit))
        if to > self._now and not self._is_free and self._kept is None and self._index >= len(self._done):
            here = self._index if self.turn is None else self.turn
            self._kept = here if kept is None else kept
        self.at_seconds = to
        if late:
            raise TimedOut(to)
