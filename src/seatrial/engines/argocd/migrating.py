"""Migration from client-side to server-side apply: the fields of an object get one manager first.

Upstream: kubectl's `migrateToSSAIfNecessary` (its library since 1.26, in Argo CD since 2.10) for whoever wrote the
annotation of the last apply, and `performCSAUpgradeMigration` in sync_context.go for kubectl's own (since 3.1).
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.engines.argocd import versions
from seatrial.engines.argocd.app import Asked, Settings
from seatrial.engines.fieldowners import LAST_APPLIED, moved
from seatrial.model.resource import Body, dig, metadata

KUBECTL = "kubectl-client-side-apply"
DECLINED = "ClientSideApplyMigration=false"


def owners_patch(live: Body | None, manager: str, asked: Asked, settings: Settings) -> Body | None:
    """The patch of managedFields for a live object; None if no other manager applied it."""
    entries = metadata(live).get("managedFields") or [] if live is not None else []
    old = {str(entry.get("manager")) for entry in _applied_on_client(entries, asked, settings)}
    if not old:
        return None
    taken = [entry for entry in entries if entry.get("operation") == "Update" and entry.get("manager") in old]
    version = metadata(live).get("resourceVersion") if live is not None else None
    return {"metadata": {"managedFields": moved(entries, taken, manager), "resourceVersion": version}}


def _applied_on_client(entries: list[Body], asked: Asked, settings: Settings) -> Iterator[Body]:
    by_kubectl = versions.has(settings.version, "kubectl moves owners")
    by_argocd = versions.has(settings.version, "ClientSideApplyMigration") and DECLINED not in asked.options
    for entry in entries:
        if entry.get("operation") != "Update":
            continue
        wrote = dig(entry, "fieldsV1", "f:metadata", "f:annotations", f"f:{LAST_APPLIED}") is not None
        if (wrote and by_kubectl) or (entry.get("manager") == KUBECTL and by_argocd):
            yield entry
