"""Indexes over the store: producers by product, workloads by image, pods by PVC. Reads no objects itself."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import TypeVar

from seatrial.kinds import Kind
from seatrial.kinds.scripts.commands import RUN_SCRIPTS, with_mounted_scripts
from seatrial.kinds.workloads.images import WORKLOADS, running_images
from seatrial.kinds.workloads.pod_template import used_claims
from seatrial.kinds.workloads.scheduler import claim_of_volume
from seatrial.model.resource import Body, Ref

Key = TypeVar("Key", bound=Hashable)
OF_KUBERNETES = ("", "apps", "batch")
"""The groups of its workloads."""


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

        self._config_maps: dict[Ref, Body] = {}
        """Scripts that containers may run."""

    def changed(self, ref: Ref, before: Body | None, after: Body | None, kind: Kind | None) -> None:
        if ref.kind == "ConfigMap" and not ref.group:
            self._scripts(ref, after)
        same_spec = before is not None and after is not None and before.get("spec") is after.get("spec")
        if kind is not None and ref.kind in RUN_SCRIPTS and kind.group in OF_KUBERNETES:
            if not same_spec:  # Its scripts are there, and its namespace never changes.
                _update(self.producers, ref, before, after, lambda body: self._made_by(kind, ref, body))
        elif kind is not None:
            _update(self.producers, ref, before, after, kind.produces)
        if same_spec:
            return  # What follows is read from the spec.
        if ref.kind in WORKLOADS:
            _update(self.workloads, ref, before, after, running_images)
        elif ref.kind == "Pod":
            _update(self.users, ref, before, after, used_claims)
        elif ref.kind == "PersistentVolume":
            _update(self.volumes, ref, before, after, claim_of_volume)

    def _scripts(self, ref: Ref, after: Body | None) -> None:
        if after is not None:
            self._config_maps[ref] = after
        else:
            self._config_maps.pop(ref, None)

    def _made_by(self, kind: Kind, ref: Ref, body: Body) -> Iterator[Ref]:
        """What an object leads to, also through the scripts that its containers mount."""

        def config_map(name: str) -> Body | None:
            return self._config_maps.get(Ref("ConfigMap", ref.namespace, name))

        return kind.produces(with_mounted_scripts(body, config_map))


def _update(
    index: dict[Key, set[Ref]],
    ref: Ref,
    before: Body | None,
    after: Body | None,
    keys: Callable[[Body], Iterator[Key]],
) -> None:
    had = set(keys(before)) if before is not None else set()
    has = set(keys(after)) if after is not None else set()
    for key in had - has:  # A script may have changed since: then some are not there, or stay.
        index.get(key, set()).discard(ref)
        if not index.get(key, True):
            del index[key]
    for key in has - had:
        index.setdefault(key, set()).add(ref)
