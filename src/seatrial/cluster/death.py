"""A client whose process dies on the way: from one write on, nothing of it reaches the API server."""

from __future__ import annotations

from seatrial.cluster.refusal import Refused, unavailable
from seatrial.cluster.request import Request
from seatrial.helm.records import TYPE
from seatrial.kinds.tables.catalogue import ServedKind
from seatrial.model.resource import Ref, name_of

FIRST = "*"
"""Dies before its first write, except for Helm's own records."""
WRITES = ("create", "update", "patch", "delete")


class Death:
    """When a client dies, and whether it has."""

    def __init__(self, actors: tuple[str, ...] = (), before: str = "") -> None:
        """`before` is the object that it does not write any more."""
        self._actors, self._before = actors, before
        self.at: Ref | None = None

    def refuse(self, kind: ServedKind, request: Request) -> None:
        """Raise `Refused` for a request of a dead client. It is not recorded: nothing heard it."""
        if not self._before or request.actor not in self._actors:
            return
        if self.at is None and request.verb in WRITES and not request.dry_run:
            name = request.name or name_of(request.body)
            ref = Ref(kind.kind, request.namespace if kind.namespaced else "", name, kind.group)
            if str(ref) == self._before or (self._before == FIRST and not _is_record(request)):
                self.at = ref
        if self.at is not None:
            raise died()


def died() -> Refused:
    return unavailable()


def _is_record(request: Request) -> bool:
    return isinstance(request.body, dict) and request.body.get("type") == TYPE
