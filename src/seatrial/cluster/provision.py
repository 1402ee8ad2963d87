"""What others put into the cluster while a trial runs: into a namespace that appears, or as something is done.

Webhooks are not called for it: the release is judged, not what others bring.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from seatrial.cluster.verbs import writes
from seatrial.kinds.core import conditions
from seatrial.kinds.webhooks import matching
from seatrial.model.resource import Body, Ref, group_of, version_of

if TYPE_CHECKING:
    from seatrial.cluster.cluster import Cluster


class Provision:
    """What is yet to come, and when."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.in_namespace: dict[str, tuple[Body, ...]] = {}
        """By namespace: what is put into it as soon as it exists."""
        self.brought: dict[tuple[Ref, bool], tuple[Body, ...]] = {}
        """By object, and whether early: what it is known to bring."""
        self.heralds: Mapping[Ref, Ref] = {}
        """Objects after whose creation another one has brought all."""
        self._unserved: list[Body] = []
        """What comes as soon as its kind is served."""

    @property
    def refs(self) -> set[Ref]:
        """Everything that others put there, then or later."""
        bodies = (*self.in_namespace.values(), *self.brought.values())
        return {self._cluster.ref_of(body) for some in bodies for body in some}

    def changed(self, ref: Ref, before: Body | None, after: Body | None, cause: int | None) -> None:
        """An object was stored or removed. A Job brings what it does when it is complete."""
        if before is None and ref.kind == "Namespace" and ref.name in self.in_namespace:
            self._provide(self.in_namespace[ref.name], cause)
        if (ref, False) in self.brought and conditions.is_true(after or {}, "Complete"):
            self.bring(ref, early=False, cause=cause)
        if before is None and ref in self.heralds:
            self.bring(self.heralds[ref], early=False, cause=cause)

    def served(self, cause: int | None) -> None:
        """Other kinds are served than before."""
        waiting, self._unserved = self._unserved, []
        self._provide(waiting, cause)

    def bring(self, by: Ref, *, early: bool, cause: int | None = None) -> tuple[Ref, ...]:
        """Create what an object is known to bring and does not exist; returns that."""
        cluster = self._cluster
        with cluster.lock:
            bodies = self.brought.get((by, early), ())
            missing = [body for body in bodies if cluster.store.get(cluster.ref_of(body)) is None]
            self._provide(missing, cause)
        return tuple(map(cluster.ref_of, missing))

    def _provide(self, bodies: Iterable[Body], cause: int | None) -> None:
        cluster = self._cluster
        hooks, cluster.hooks = cluster.hooks, matching.NO_HOOKS
        for body in bodies:
            group, version = group_of(str(body["apiVersion"])), version_of(str(body["apiVersion"]))
            if cluster.discovery.of_kind(group, body["kind"], version) is None:
                self._unserved.append(body)
                continue
            view = cluster.view()
            writes.create_object(cluster, cluster.kind_of(body), body, actor="kubernetes", cause=cause, view=view)
            if body["kind"] == "CustomResourceDefinition":
                self._establish(cluster.ref_of(body), cause)
        cluster.hooks = hooks

    def _establish(self, ref: Ref, cause: int | None) -> None:
        """Serve a kind at once: that others establish a CRD is no race of this client."""
        store = self._cluster.store
        crd = store.get(ref)
        if crd is not None:
            now = [
                {"type": name, "status": "True", "reason": "NoConflicts"} for name in ("NamesAccepted", "Established")
            ]
            status = {**(crd.get("status") or {}), "conditions": now}
            self._cluster.changed(ref, crd, store.put(ref, {**crd, "status": status}), cause)
