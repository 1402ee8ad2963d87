"""Objects that make other objects - Applications, Kustomizations - followed from the first to the last."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import TypeVar

from seatrial.model.errors import CannotContinue
from seatrial.model.resource import Ref

DEPTH_MAX = 20
OBJECTS_MAX = 2_000

T = TypeVar("T")
Trail = tuple[Ref, ...]
"""The objects that led to one, the first one first."""


def follow(
    roots: Iterable[tuple[Ref, T]],
    expand: Callable[[Ref, T], Iterable[tuple[Ref, T]]],
    what: str,
    *,
    trail: Trail = (),
) -> list[Trail]:
    """Expand each object once, the roots and then what they make; the trails that come back to where they were.

    `what` is what users call the objects.
    """
    loops: list[Trail] = []
    known: set[Ref] = set()
    queue = deque((ref, found, trail) for ref, found in roots)
    while queue:
        ref, found, trail = queue.popleft()
        if ref in trail:
            loops.append((*trail, ref))
        if ref in known:
            continue
        if len(trail) > DEPTH_MAX:
            way = " -> ".join(one.name for one in trail)
            raise CannotContinue(f"{what} that make {what}, more than {DEPTH_MAX} deep: {way}")
        if len(known) >= OBJECTS_MAX:
            raise CannotContinue(f"more than {OBJECTS_MAX} {what}")
        known.add(ref)
        queue.extend((made, body, (*trail, ref)) for made, body in expand(ref, found))
    return loops
