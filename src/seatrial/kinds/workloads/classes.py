"""PriorityClass and RuntimeClass: names that a pod may ask for, and is refused without."""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.kinds import Kind
from seatrial.kinds.core.immutable import NEWEST, forbidden, frozen_field
from seatrial.model.resource import Body


def frozen_priority(old: Body, new: Body, minor: int = NEWEST, /) -> Iterator[str]:
    if old.get("value") != new.get("value"):
        yield forbidden("value", "may not be changed in an update.")
    yield from frozen_field(old, new, "preemptionPolicy", minor)


def frozen_runtime(old: Body, new: Body, minor: int = NEWEST, /) -> Iterator[str]:
    yield from frozen_field(old, new, "handler", minor)


def default_priority(body: Body) -> Body:
    return {"preemptionPolicy": "PreemptLowerPriority", **body}


KINDS = (
    Kind("PriorityClass", "scheduling.k8s.io", frozen=frozen_priority, default=default_priority),
    Kind("RuntimeClass", "node.k8s.io", frozen=frozen_runtime),
)
