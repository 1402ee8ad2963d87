"""Migration from client-side to server-side apply: the fields of an object get one manager first.

Upstream: kubectl's `migrateToSSAIfNecessary` (its library since 1.26, in Argo CD since 2.10) for the manager of the
annotation of the last apply, after a first apply and followed by a second; `performCSAUpgradeMigration` in
sync_context.go for kubectl's own, before it (since 3.1).
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.engines.argocd import versions
from seatrial.engines.argocd.app import Settings, SyncOptions
from seatrial.engines.fieldowners import annotation_owners, moved
from seatrial.model.resource import Body, metadata

KUBECTL = "kubectl-client-side-apply"
DECLINED = "ClientSideApplyMigration=false"


def owners_of_kubectl(live: Body | None, manager: str, asked: SyncOptions, settings: Settings) -> Body | None:
    """Argo CD's own patch of managedFields before it applies: what kubectl applied on the client's side."""
    if not versions.has(settings.version, "ClientSideApplyMigration") or DECLINED in asked.options:
        return None
    return _patch(live, {KUBECTL}, manager)


def owners_of_client_side_apply(applied: Body, manager: str, settings: Settings) -> Body | None:
    """kubectl's patch after the first apply: what was written by those who wrote the annotation of the last apply."""
    if not versions.has(settings.version, "kubectl moves owners"):
        return None
    wrote = {str(entry.get("manager")) for entry in annotation_owners(applied, "Update")}
    return _patch(applied, wrote, manager)


def _patch(body: Body | None, managers: set[str], manager: str) -> Body | None:
    taken = [entry for entry in _entries(body) if entry.get("manager") in managers]
    if not taken or body is None:
        return None
    meta = metadata(body)
    return {
        "metadata": {
            "managedFields": moved(meta["managedFields"], taken, manager),
            "resourceVersion": meta.get("resourceVersion"),
        }
    }


def _entries(body: Body | None) -> Iterator[Body]:
    entries = metadata(body).get("managedFields") or () if body is not None else ()
    return (entry for entry in entries if entry.get("operation") == "Update")
