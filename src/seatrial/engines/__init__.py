"""BELIEF: what each deploy engine does. An engine does not know whether the cluster is real.

Helm is the real one (`helm.py`). Engines that cannot be embedded are scripts: generators that say commands and are
sent replies, which one driver plays against the embedded cluster or a live one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from seatrial.model.refusal import NO_FAILURE, Failure
from seatrial.model.resource import Body, Ref
from seatrial.model.timeline import Event, Operation, Outcome, Reconciled
from seatrial.sandbox import Door

if TYPE_CHECKING:
    from seatrial.engines.script import Answer, Line


class Api(Protocol):
    """The cluster as a client that speaks HTTP finds it."""

    def kubeconfig(self, namespace: str = "default", path: str = "") -> str: ...

    def door(self) -> Door:
        """How a process in the sandbox reaches the cluster."""
        ...

    def believes(
        self,
        content: Callable[[Body], bool | None],
        waits_for: Callable[[Iterable[Event]], list[Ref]],
        *,
        sleeps_seconds: float = 0,
    ) -> None:
        """Tell when the client that will speak now stops waiting for an object, and for which it waits.

        `waits_for` reads that from what the client has written so far. Its watches do not say it: they show all objects
        of a kind, and a client that opens several at once opens them in any order. `sleeps_seconds`: how long it may
        be silent although it waits for nothing. `content` is None where an object alone does not tell.
        """
        ...

    def stuck(self, patience_seconds: float) -> Stuck | None:
        """Why the client's wait never ends; None while that is not known.

        If a deadline in the cluster passes before the client's timeout, this is about the wait until then.
        """
        ...

    def silent(self) -> bool:
        """Whether the client has long asked for nothing, waits for nothing and computes nothing: it has locked up."""
        ...

    def hang_up(self) -> None:
        """Refuse whatever is waited for, so that a client which takes no cancellation ends by itself."""
        ...


class ApiBesideUser(Api, Protocol):
    """The same where a user acts as well, while the client runs: on the embedded cluster."""

    def do(self, line: Line) -> Answer:
        """Do a line of a script beside the client, in the name of its engine."""
        ...

    def hide(self, refs: Iterable[Ref], groups: Iterable[str] = ()) -> None:
        """Leave objects of the engine itself out of the rehearsal, and what it notes in the objects of API groups.

        Nothing else in the cluster acts on the kinds of these groups.
        """
        ...

    def silent_seconds(self) -> float:
        """How long the client has requested nothing, and nothing was sent to it."""
        ...

    def changes(self) -> int:
        """How often anything has changed in the cluster."""
        ...

    def requests(self) -> int:
        """How many requests the client has sent."""
        ...


class Stalled(Exception):
    """An engine locked itself up: nothing can be said of the release. Playing again from the start is the remedy."""


class Stuck(Struct, frozen=True):
    """A wait that cannot end."""

    sentence: str
    waits_for: tuple[Ref, ...]
    lacking: tuple[Ref, ...]
    passed_seconds: float = 0.0
    """After so many seconds a deadline of an awaited object passes; 0 if none does."""


class Ended(Struct, frozen=True):
    """How one act of an engine ended, in its own words."""

    outcome: Outcome
    error: str = ""
    warnings: tuple[str, ...] = ()
    stuck: Stuck | None = None
    operations: tuple[Operation, ...] = ()
    """What an engine that keeps state of its own says of each thing it was at."""
    reconciled: tuple[Reconciled, ...] = ()
    failure: Failure = NO_FAILURE
    """Why it failed."""
    kept: bytes = b""
    """What a real client remembers outside of the cluster until its next act."""
