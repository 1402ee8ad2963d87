"""Who has to do with what: makers by what they make, workloads by images, pods by claims. Looks nothing up itself."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import TypeVar

from seatrial.kinds import Kind
from seatrial.kinds.workloads.images import WORKLOADS, running_images
from seatrial.kinds.workloads.pod_template import used_claims
from seatrial.kinds.workloads.scheduler import claim_of_volume
from seatrial.model.resource import Body, Ref

Key = TypeVar("Key", bound=Hashable)


class Origins:
    """Kept up to date with every change of the store."""

    def __init__(self) -> None:
        self.makers: dict[Ref, set[Ref]] = {}
        """By an object: those that lead to it, while whoever acts on them runs."""
        self.runners: dict[str, set[Ref]] = {}
        """By the name of an image: the workloads that run it."""

        self.users: dict[Ref, set[Ref]] = {}
        """By a claim: the pods that use it."""

        self.volumes: dict[Ref, set[Ref]] = {}
        """By a claim, or ANY_CLAIM: the volumes that name it."""

    def changed(self, ref: Ref, before: Body | None, after: Body | None, kind: Kind | None) -> None:
        if kind is not None:
            _note(self.makers, ref, before, after, kind.produces)
        if ref.kind in WORKLOADS:
            _note(self.runners, ref, before, after, running_images)
        elif ref.kind == "Pod":
            _note(self.users, ref, before, after, used_claims)
        elif ref.kind == "PersistentVolume":
            _note(self.volumes, ref, before, after, claim_of_volume)


def _note(
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
    for key in has - had:
        index.setdefault(key, set()).add(ref)
