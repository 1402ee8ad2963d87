"""Indexes over the store: producers by product, workloads by image, pods by PVC. Reads no objects itself."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import TypeVar

from seatrial.kinds import Kind
from seatrial.kinds.workloads.images import WORKLOADS, running_images
from seatrial.kinds.workloads.pod_template import used_claims
from seatrial.kinds.workloads.scheduler import claim_of_volume
from seatrial.model.resource import Body, Ref

Key = TypeVar("Key", bound=Hashable)


class Indexes:
    """Updated with every change of the store."""

    def __init__(self) -> None:
        self.producers: dict[Ref, set[Ref]] = {}
        """By object: the objects that lead to it, while their controllers run."""
        self.workloads: dict[str, set[Ref]] = {}
        """By image name: the workloads that run it."""

        self.users: dict[Ref, set[Ref]] = {}
        """By PVC: the pods that use it."""

        self.volumes: dict[Ref, set[Ref]] = {}
        """By PVC, or ANY_CLAIM: the PersistentVolumes that name it."""

    def changed(self, ref: Ref, before: Body | None, after: Body | None, kind: Kind | None) -> None:
        if kind is not None:
            _update(self.producers, ref, before, after, kind.produces)
        if before is not None and after is not None and before.get("spec") is after.get("spec"):
            return  # What follows is read from the spec.
        if ref.kind in WORKLOADS:
            _update(self.workloads, ref, before, after, running_images)
        elif ref.kind == "Pod":
            _update(self.users, ref, before, after, used_claims)
        elif ref.kind == "PersistentVolume":
            _update(self.volumes, ref, before, after, claim_of_volume)


def _update(
    index: dict[Key, set[Ref]],
    ref: Ref,
    before: Body | None,
    after: Body | None,
    keys: Callable[[Body], Iterator[Key]],
) -> None:
    had = set(keys(before)) if before is not None else set()
    has = set(keys(after)) if after is not None else set()
    for key in had - has:
        index[key].discard(ref)
        if not index[key]:
            del index[key]
    for key in has - had:
        index.setdefault(key, set()).add(ref)
