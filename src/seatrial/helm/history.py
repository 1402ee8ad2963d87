"""The life of a release before a trial: its revisions as Helm keeps them, and what they left behind. Reads no file."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from seatrial.helm import hooks, records
from seatrial.model.release import Release, Resource
from seatrial.model.resource import Body, annotations_of, labels_of, metadata

NOTHING_THERE = ("uninstalled", "uninstalling")
SERVER_SIDE = "ssa"
"""What a record says of how its objects were written; Helm 3 says nothing and writes them from the client's side."""


class Revision(Struct, frozen=True):
    """One revision: Helm's record of it, and its objects."""

    number: int
    status: str
    record: Body
    release: Release


class History(Struct, frozen=True):
    """What Helm knows of one release, oldest revision first. There is at least one."""

    source: str
    """How the user named it: `release.yaml@3`."""
    name: str
    namespace: str
    revisions: tuple[Revision, ...]

    @property
    def current(self) -> Revision:
        """The revision whose objects are in the cluster: the newest that is deployed, or else the newest of all."""
        deployed = [revision for revision in self.revisions if revision.status == "deployed"]
        return (deployed or self.revisions)[-1]

    @property
    def server_side(self) -> bool:
        return self.current.record.get("apply_method") == SERVER_SIDE


def left_behind(history: History) -> Iterator[Body]:
    """What Helm would find in the cluster, in the order in which it came there."""
    current = history.current
    if current.status not in NOTHING_THERE:
        yield from (_placed(crd, {}) for crd in current.release.crds)
        yield from (_left(resource, history) for resource in current.release.resources if _is_there(resource, history))
    yield from (_secret(revision, history) for revision in history.revisions)


def _is_there(resource: Resource, history: History) -> bool:
    """Whether a plain object, or a hook that has run and stays; which revision ran it does not matter."""
    if not hooks.is_hook(resource.body):
        return True
    acts = ("install",) if history.current.number == 1 else ("install", "upgrade")
    return hooks.SUCCEEDED not in hooks.delete_policies(resource.body) and any(
        hooks.runs_at(resource.body, act) for act in acts
    )


def _left(resource: Resource, history: History) -> Body:
    """An object as Helm writes it: with its marks of ownership, unless it is a hook."""
    if hooks.is_hook(resource.body):
        return _placed(resource, {})
    marks = {
        "labels": {**labels_of(resource.body), "app.kubernetes.io/managed-by": "Helm"},
        "annotations": {
            **annotations_of(resource.body),
            "meta.helm.sh/release-name": history.name,
            "meta.helm.sh/release-namespace": history.namespace,
        },
    }
    return _placed(resource, marks)


def _placed(resource: Resource, marks: Body) -> Body:
    namespace = {"namespace": resource.ref.namespace} if resource.ref.namespace else {}
    return {**resource.body, "metadata": {**metadata(resource.body), **namespace, **marks}}


def _secret(revision: Revision, history: History) -> Body:
    """The record as Helm's storage writes it."""
    labels = {"name": history.name, "owner": "helm", "status": revision.status, "version": str(revision.number)}
    name = records.record_name(history.name, revision.number)
    meta = {"name": name, "namespace": history.namespace, "labels": labels}
    data = {"release": records.packed(revision.record)}
    return {"apiVersion": "v1", "kind": "Secret", "type": records.TYPE, "metadata": meta, "data": data}
