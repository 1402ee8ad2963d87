"""The time of a cluster. It passes only while everything waits for it."""

from __future__ import annotations

from typing import Any

from seatrial.kinds import Deadline
from seatrial.model.resource import Body, Ref, uid_of


class Clock:
    """What time it is, and when objects were created and changed."""

    def __init__(self) -> None:
        self.now_seconds = 0.0
        self.changed: dict[Ref, float] = {}
        self.created: dict[Ref, float] = {}
        self.memories: dict[str, dict[str, Any]] = {}
        """By uid of a pod: what its programs remember."""

    def note(self, ref: Ref, before: Body | None, after: Body | None) -> None:
        if before is not None and after is None:
            for times in (self.changed, self.created):
                times.pop(ref, None)
            self.memories.pop(uid_of(before), None)
            return
        self.changed[ref] = self.now_seconds
        if before is None:
            self.created[ref] = self.now_seconds

    def left(self, ref: Ref, deadline: Deadline) -> float:
        """The seconds until a deadline."""
        if deadline.since == "now":
            return deadline.seconds
        since = self.created if deadline.since == "creation" else self.changed
        return max(0.0, since.get(ref, self.now_seconds) + deadline.seconds - self.now_seconds)
