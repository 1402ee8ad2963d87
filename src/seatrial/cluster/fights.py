"""Controllers that undo each other's changes: two HorizontalPodAutoscalers of one Deployment, say.

In a real cluster they go on forever, as often as their controllers look. Here they are stopped, until a client changes
one of the objects.
"""

from __future__ import annotations

from collections.abc import Iterable

from seatrial.kinds.core.objectmeta import generation_of
from seatrial.model.resource import Body, Ref, dig
from seatrial.model.timeline import Fight

CHANGES_MAX = 200
"""Changes of one object's spec by controllers that follow from one request, besides those of a rollout."""
CHANGES_PER_REPLICA = 4
"""A rollout with a surge of one changes the size of its ReplicaSets for every pod."""


class Fights:
    """What controllers changed how often, and who was stopped."""

    def __init__(self) -> None:
        self.writer: Ref | None = None
        """The object that a controller acts for now; None while a client acts."""
        self.stopped: dict[Ref, Ref] = {}
        """Objects whose controller does not run any more, and what it changed without end."""
        self._changes: dict[Ref, int] = {}
        self._writers: dict[Ref, set[Ref]] = {}
        self._seen: dict[Ref, set[Ref]] = {}

    def begin(self) -> None:
        self._changes.clear()
        self._writers.clear()

    def changed(self, ref: Ref, before: Body | None, after: Body | None) -> None:
        if self.writer is None:
            self._forget(ref)
        elif before is not None and after is not None and generation_of(after) > generation_of(before):
            self._count(ref, self.writer, after)

    def seen(self) -> Iterable[Fight]:
        """The fights since this was last called."""
        seen, self._seen = self._seen, {}
        return (Fight(ref, tuple(sorted(writers))) for ref, writers in sorted(seen.items()))

    def _count(self, ref: Ref, writer: Ref, after: Body) -> None:
        count = self._changes[ref] = self._changes.get(ref, 0) + 1
        writers = self._writers.setdefault(ref, set())
        writers.add(writer)
        if count > CHANGES_MAX + CHANGES_PER_REPLICA * int(dig(after, "spec", "replicas") or 0):
            self.stopped.update(dict.fromkeys(writers, ref))
            self._seen.setdefault(ref, set()).update(writers)

    def _forget(self, ref: Ref) -> None:
        """A client changed an object: what fights for it, or what it fights for, may do so again."""
        self.stopped = {writer: about for writer, about in self.stopped.items() if ref not in (writer, about)}
