"""Who reads and writes what: the controllers of each object, and each request. Tells whose order is open.

Only recorded if it is asked for (`check --explore`).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from msgspec import Struct

from seatrial.cluster.store import Store
from seatrial.cluster.view import Read, View
from seatrial.model.resource import Ref

Mover = tuple[str, Ref]
"""The controllers of an object and of what it owns, or the request for one."""
CONTROLLERS, REQUEST = "controllers", "request"


class _Touched(Struct):
    reads: list[set[Read]]
    """Of each view; they grow while it is used."""
    writes: set[Ref]


class Touches:
    """What each mover touches."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._movers: dict[Mover, _Touched] = {}
        self._now: _Touched | None = None
        self.records = False
        """Whether anything is recorded."""

    def begin(self, mover: Mover) -> None:
        """Attribute what follows to this one."""
        if self.records:
            self._now = self._movers.setdefault(mover, _Touched([], set()))

    def viewed(self, view: View) -> View:
        if self._now is not None:
            self._now.reads.append(view.reads)
        return view

    def wrote(self, ref: Ref) -> None:
        if self._now is not None:
            self._now.writes.add(ref)

    def objects(self) -> list[Ref]:
        """Objects whose controllers wrote something."""
        return sorted(ref for (of, ref), touched in self._movers.items() if of == CONTROLLERS and touched.writes)

    def open_pairs(self) -> list[tuple[Mover, Mover]]:
        """Pairs of which one reads what the other writes. Two requests of one client are never open."""
        reads = {mover: set(self._objects(touched)) for mover, touched in self._movers.items()}
        found = []
        for one, other in combinations(sorted(self._movers), 2):
            if one[1] == other[1] or (one[0], other[0]) == (REQUEST, REQUEST):
                continue
            if reads[one] & self._movers[other].writes or reads[other] & self._movers[one].writes:
                found.append((one, other))
        return found

    def _objects(self, touched: _Touched) -> Iterator[Ref]:
        for read in (read for reads in touched.reads for read in reads):
            match read:
                case ("get" | "peek", Ref() as ref):
                    yield ref
                case ("label", group, kind, namespace, label, value):
                    found = self._store.labelled((str(group), str(kind)), str(namespace), str(label), str(value))
                    yield from (ref for ref, _ in found)
