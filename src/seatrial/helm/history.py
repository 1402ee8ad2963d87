"""Revisions of a release that exist before a trial, and the objects they left in the cluster. Reads no files."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from seatrial.helm import hooks, records
from seatrial.helm.ownership import owned_by
from seatrial.model.release import Release, Resource
from seatrial.model.resource import Body, with_metadata

NOTHING_THERE = ("uninstalled", "uninstalling")
SERVER_SIDE = "ssa"
"""Value of `apply_method` in a record written with server-side apply. Helm 3 has no such field and applies
client-side."""


class Revision(Struct, frozen=True):
    """One revision: Helm's record and its objects."""

    number: int
    status: str
    record: Body
    release: Release


class History(Struct, frozen=True):
    """Helm's history of one release, oldest revision first. Never empty."""

    source: str
    """As the user typed it: `release.yaml@3`."""
    name: str
    namespace: str
    revisions: tuple[Revision, ...]

    @property
    def current(self) -> Revision:
        """The revision whose objects are in the cluster: the newest deployed one, otherwise the newest."""
        deployed = [revision for revision in self.revisions if revision.status == "deployed"]
        return (deployed or self.revisions)[-1]

    @property
    def server_side(self) -> bool:
        return self.current.record.get("apply_method") == SERVER_SIDE


def existing_objects(history: History) -> Iterator[Body]:
    """The objects that are in the cluster before the trial, in the order of their creation."""
    current = history.current
    if current.status not in NOTHING_THERE:
        yield from (_placed(crd) for crd in current.release.crds)
        yield from (_left(resource, history) for resource in current.release.resources if _is_there(resource, history))
    yield from records_of(history)


def records_of(history: History) -> Iterator[Body]:
    """The release Secrets, oldest first."""
    return (_secret(revision, history) for revision in history.revisions)


def _is_there(resource: Resource, history: History) -> bool:
    """Whether the object is a regular resource, or a hook that ran and was not deleted, in whichever revision."""
    if not hooks.is_hook(resource.body):
        return True
    actions = ("install",) if history.current.number == 1 else ("install", "upgrade")
    return hooks.SUCCEEDED not in hooks.delete_policies(resource.body) and any(
        hooks.runs_at(resource.body, action) for action in actions
    )


def _left(resource: Resource, history: History) -> Body:
    """An object as Helm applies it: with ownership labels and annotations, unless it is a hook."""
    body = _placed(resource)
    return body if hooks.is_hook(body) else owned_by(body, history.name, history.namespace)


def _placed(resource: Resource) -> Body:
    namespace = resource.ref.namespace
    return with_metadata(resource.body, namespace=namespace) if namespace else resource.body


def _secret(revision: Revision, history: History) -> Body:
    """The release Secret as Helm's storage driver writes it."""
    labels = {"name": history.name, "owner": "helm", "status": revision.status, "version": str(revision.number)}
    name = records.record_name(history.name, revision.number)
    meta = {"name": name, "namespace": history.namespace, "labels": labels}
    data = {"release": records.encode(revision.record)}
    return {"apiVersion": "v1", "kind": "Secret", "type": records.TYPE, "metadata": meta, "data": data}
