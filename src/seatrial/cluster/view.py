"""The cluster as one controller sees it, and the record of what it reads."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from seatrial.cluster.clock import Clock
from seatrial.cluster.indexes import Indexes
from seatrial.cluster.store import Store
from seatrial.kinds.workloads.scheduler import ANY_CLAIM
from seatrial.model.resource import Body, Ref, uid_of

Read = tuple[str, ...] | tuple[str, Ref]
IDLE: Read = ("rest",)
"""Read by controllers that wait only for time."""


class View:
    """The cluster as one controller sees it (`kinds.World`). Records every read."""

    def __init__(
        self,
        store: Store,
        served: Callable[[str, str], bool],
        indexes: Indexes,
        clock: Clock,
        worst_case: bool,
        *,
        idle: bool = False,
    ) -> None:
        self._store = store
        self._served = served
        self._indexes = indexes
        self._clock = clock
        self._worst_case = worst_case
        self._idle = idle
        self.reads: set[Read] = set()

    def get(self, ref: Ref) -> Body | None:
        self.reads.add(("get", ref))
        return self._store.get(ref)

    def peek(self, ref: Ref) -> Body | None:
        self.reads.add(("peek", ref))
        return self._store.get(ref)

    def owned(self, owner: Body, kind: str, group: str = "") -> list[Body]:
        uid = uid_of(owner)
        self.reads.add(("owned", uid, group, kind))
        return [
            body
            for ref, body in self._store.dependents(uid)
            if ref.kind == kind and ref.group == group and controller_uid(body) == uid
        ]

    def select(self, kind: str, namespace: str, labels: dict[str, str], group: str = "") -> list[Body]:
        label, value = min(labels.items())
        self.reads.add(("label", group, kind, namespace, label, value))
        found = self._store.labelled((group, kind), namespace, label, value)
        wanted = labels.items()
        return [body for _, body in found if wanted <= (body["metadata"].get("labels") or {}).items()]

    def all(self, kind: str, namespace: str = "", group: str = "") -> list[Body]:
        self.reads.add(("all", group, kind, namespace))
        return self._store.of_kind((group, kind), namespace)

    def content(self, namespace: str) -> list[Body]:
        self.reads.add(("content", namespace))
        return [body for _, body in self._store.content(namespace)]

    def running(self, image: str) -> list[Body]:
        self.reads.add(("image", image))
        return self._found(self._indexes.workloads.get(image, ()))

    def volumes_for(self, claim: Ref) -> list[Body]:
        claims = (claim, ANY_CLAIM)
        self.reads.update(("volume", name) for name in claims)
        return self._found(ref for name in claims for ref in self._indexes.volumes.get(name, ()))

    def using(self, claim: Ref) -> list[Body]:
        self.reads.add(("claim", claim))
        return self._found(self._indexes.users.get(claim, ()))

    def served(self, kind: str, group: str) -> bool:
        self.reads.add(("served", group, kind))
        return self._served(kind, group)

    @property
    def worst_case(self) -> bool:
        return self._worst_case

    @property
    def idle(self) -> bool:
        self.reads.add(IDLE)
        return self._idle

    @property
    def now_seconds(self) -> float:
        return self._clock.now_seconds

    def age_seconds(self, body: Body) -> float:
        ref = self._store.by_uid(uid_of(body))
        return self._clock.now_seconds - self._clock.created.get(ref, 0.0) if ref is not None else 0.0

    def memory(self, uid: str) -> dict[str, Any]:
        return self._clock.memories.setdefault(uid, {})

    def _found(self, refs: Iterable[Ref]) -> list[Body]:
        found = (self._store.get(ref) for ref in sorted(refs))
        return [body for body in found if body is not None]


def controller_uid(body: Body) -> str:
    owners = body["metadata"].get("ownerReferences") or ()
    return next((owner.get("uid", "") for owner in owners if owner.get("controller")), "")
