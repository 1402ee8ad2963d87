"""PriorityClass and RuntimeClass. A pod that names a missing one is rejected."""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.kinds import Kind
from seatrial.kinds.core.immutable import NEWEST, forbidden, immutable_field
from seatrial.model.resource import Body


def immutable_priority(old: Body, new: Body, minor: int = NEWEST, /) -> Iterator[str]:
    if old.get("value") != new.get("value"):
        yield forbidden("value", "may not be changed in an update.")
    yield from immutable_field(old, new, "preemptionPolicy", minor)


def immutable_runtime(old: Body, new: Body, minor: int = NEWEST, /) -> Iterator[str]:
    yield from immutable_field(old, new, "handler", minor)


def default_priority(body: Body) -> Body:
    return {"preemptionPolicy": "PreemptLowerPriority", **body}


KINDS = (
    Kind("PriorityClass", "scheduling.k8s.io", immutable=immutable_priority, default=default_priority),
    Kind("RuntimeClass", "node.k8s.io", immutable=immutable_runtime),
)
