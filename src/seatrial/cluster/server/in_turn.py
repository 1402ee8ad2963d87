"""Creations that a client sends side by side, answered in the order of names. Knows nothing of sockets.

Helm installs all objects of a kind at once. Which request arrives first is chance, and what controllers do in between
depends on it. Before that, Helm looks for every object that it is going to create.
"""

from __future__ import annotations

from collections.abc import Callable

from seatrial.model.resource import Ref

TOGETHER_MAX = 100
"""Objects of a kind. The connection of each request that waits stays open."""
Answer = Callable[[], None]


class InTurn:
    """The objects that one client is going to create, and its requests that arrived too early."""

    def __init__(self) -> None:
        self._missing: set[Ref] = set()
        """Looked for, not found, and not written since."""
        self._written: set[Ref] = set()
        self._early: dict[Ref, Answer] = {}

    @property
    def waits(self) -> bool:
        """Whether a request waits for its turn."""
        return bool(self._early)

    def not_found(self, ref: Ref) -> None:
        """The client looked for an object. One that it had written is deleted, and not looked for to be created."""
        if ref not in self._written:
            self._missing.add(ref)

    def holds(self, ref: Ref, answer: Answer) -> bool:
        """Whether another object of this kind comes first: then `answer` is kept until that is written."""
        if ref not in self._missing or ref in self._early:
            return False
        together = self._together(ref.kind)
        if len(together) > TOGETHER_MAX or min(together) == ref:
            return False
        self._early[ref] = answer
        return True

    def wrote(self, ref: Ref) -> Answer | None:
        """An object was written, or refused. Returns the request whose turn it is, if it has arrived."""
        self._written.add(ref)
        self._missing.discard(ref)
        return self._next(ref.kind)

    def skip(self) -> Answer | None:
        """What comes first does not arrive: go on without it. Returns the request whose turn it is, if there is one."""
        if not self._early:
            return None
        first = min(self._early)
        self._missing -= {ref for ref in self._together(first.kind) if ref < first}
        return self._next(first.kind)

    def _next(self, kind: str) -> Answer | None:
        first = min(self._together(kind), default=None)
        return self._early.pop(first, None) if first else None

    def _together(self, kind: str) -> list[Ref]:
        return [ref for ref in self._missing if ref.kind == kind]
