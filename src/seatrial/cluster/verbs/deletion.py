"""Delete: at once, or marked until finalizers, grace period and dependents allow it; and the garbage collector."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial import kinds
from seatrial.cluster import admission
from seatrial.cluster.refusal import Refused, conflict, not_found
from seatrial.cluster.request import Reply, Request
from seatrial.cluster.verbs import conversion, garbage, reads
from seatrial.cluster.verbs.fieldselector import field_test
from seatrial.cluster.verbs.labelselector import label_test
from seatrial.cluster.watch import in_version
from seatrial.kinds import Delete, World
from seatrial.kinds.tables.catalogue import ServedKind
from seatrial.model.resource import Body, Ref, metadata

if TYPE_CHECKING:
    from seatrial.cluster.cluster import Cluster

GRACE_SECONDS = 30
COLLECTOR = "garbage-collector"
OWN_STRATEGY = frozenset((("", "Namespace"), ("apiextensions.k8s.io", "CustomResourceDefinition")))
"""Kinds with their own deletion strategy: pkg/registry/core/namespace, apiextensions' customresourcedefinition."""
PRECONDITIONS = {
    "uid": ("UID", "The object might have been deleted and then recreated"),
    "resourceVersion": ("ResourceVersion", "The object might have been modified"),
}


def delete(cluster: Cluster, kind: ServedKind, request: Request) -> Reply:
    """Answer a DELETE of one object."""
    ref = reads.ref_for(kind, request)
    live = cluster.store.get(ref)
    if live is None:
        refused = not_found(kind.plural, kind.group, request.name)
        cluster.recorder.refused(request.actor, "delete", ref, refused.refusal, request.cause)
        raise refused
    _preconditions(kind, live, request)
    try:
        conversion.read(cluster, kind, ref)
        _admit(cluster, kind, ref, live, cluster.view(), dry_run=request.dry_run)
    except Refused as refused:
        cluster.recorder.refused(request.actor, "delete", ref, refused.refusal, request.cause)
        raise
    if request.dry_run:
        return Reply(200, in_version(live, kind))
    how = request.propagation or "Background"
    left = mark(cluster, ref, live, request.actor, request.cause, how, request.grace_seconds)
    if left is None:
        return Reply(200, _success(kind, live))
    return Reply(200, in_version(left, kind))


def delete_collection(cluster: Cluster, kind: ServedKind, request: Request) -> Reply:
    """Answer a DELETE of a collection."""
    labels, fields = label_test(request.label_selector), field_test(request.field_selector, kind)
    items = []
    for body in cluster.store.of_kind((kind.group, kind.kind), request.namespace if kind.namespaced else ""):
        if labels(body) and fields(body):
            ref = Ref(kind.kind, metadata(body).get("namespace", ""), metadata(body)["name"], kind.group)
            _admit(cluster, kind, ref, body, cluster.view(), dry_run=request.dry_run)
            if not request.dry_run:
                mark(
                    cluster, ref, body, request.actor, None, request.propagation or "Background", request.grace_seconds
                )
            items.append(in_version(body, kind))
    meta = {"resourceVersion": str(cluster.store.version)}
    return Reply(200, {"kind": kind.list_kind, "apiVersion": kind.api_version, "metadata": meta, "items": items})


def delete_for(cluster: Cluster, deletion: Delete, actor: str, cause: int | None, view: World) -> None:
    """Delete an object for a controller; raises `Refused` if it may not be deleted."""
    now, ref = deletion.now, cluster.ref_of(deletion.body)
    live = cluster.store.get(ref)
    if live is None or (metadata(live).get("finalizers") if now else metadata(live).get("deletionTimestamp")):
        return
    if not deletion.skip_webhooks:
        _admit(cluster, cluster.kind_of(live), ref, live, view)
    if now:
        _remove(cluster, ref, actor, cause, deletion.why)
    else:
        mark(cluster, ref, live, actor, cause, "Background", None, deletion.why)


def mark(
    cluster: Cluster,
    ref: Ref,
    live: Body,
    actor: str,
    cause: int | None,
    propagation: str,
    grace_seconds: int | None,
    why: str = "",
) -> Body | None:
    """Begin a deletion. Returns the marked object, or None if it was removed at once."""
    known = kinds.known().get((ref.group, ref.kind))
    if known is not None and known.deleting is not None:
        live = known.deleting(live)
    finalizers = garbage.finalizers_for(live, propagation)
    grace = _grace(ref, live, grace_seconds)
    if not finalizers and not grace and not _namespace_content(ref, live):
        _remove(cluster, ref, actor, cause, why)
        return None
    meta = metadata(live)
    marked = {**meta, "finalizers": finalizers} if finalizers else {k: v for k, v in meta.items() if k != "finalizers"}
    marked.setdefault("deletionTimestamp", cluster.store.now())
    if (ref.group, ref.kind) not in OWN_STRATEGY:
        marked["deletionGracePeriodSeconds"] = min(grace, meta.get("deletionGracePeriodSeconds", grace))
        if "generation" in meta and "deletionTimestamp" not in meta:
            marked["generation"] = meta["generation"] + 1
    if marked == meta:
        cluster.recorder.note(actor, "delete", ref, "unchanged", why, cause, live, live)
        return live
    body = {**live, "metadata": marked}
    stored = cluster.store.put(ref, body)
    index = cluster.recorder.note(actor, "delete", ref, "deleting", why, cause, live, stored)
    cluster.changed(ref, live, stored, index)
    if garbage.FOREGROUND in finalizers or garbage.ORPHAN in finalizers:
        cluster.controllers.orphaned(meta["uid"], index)
    return stored


def finish(cluster: Cluster, ref: Ref, body: Body, actor: str, cause: int | None) -> None:
    """Remove an object whose deletion waited for the last change."""
    meta = body["metadata"]
    held = meta.get("finalizers") or meta.get("deletionGracePeriodSeconds") or _namespace_content(ref, body)
    if meta.get("deletionTimestamp") and not held:
        _remove(cluster, ref, actor, cause, "")


def collect(cluster: Cluster, uid: str, cause: int | None, view: World) -> None:
    """Run the garbage collector for one owner that is gone or terminating, and for its dependents."""
    owner_ref = cluster.store.by_uid(uid)
    owner = cluster.store.get(owner_ref) if owner_ref else None
    if owner is None:
        _collect_dependents(cluster, uid, cause, view)
        return
    if not metadata(owner).get("deletionTimestamp"):
        return
    finalizers = metadata(owner).get("finalizers") or ()
    if garbage.ORPHAN in finalizers:
        for ref, body in cluster.store.dependents(uid):
            _put(cluster, ref, body, garbage.without_owner(body, uid), cause)
        _remove_finalizer(cluster, owner, garbage.ORPHAN, cause)
    elif garbage.FOREGROUND in finalizers:
        dependents = cluster.store.dependents(uid)
        for ref, body in dependents:
            _delete_dependent(cluster, ref, body, cause, view, "its owner is being deleted")
        if not any(garbage.blocks(body, uid) for _, body in cluster.store.dependents(uid)):
            _remove_finalizer(cluster, owner, garbage.FOREGROUND, cause)


def _collect_dependents(cluster: Cluster, uid: str, cause: int | None, view: World) -> None:
    for ref, body in cluster.store.dependents(uid):
        others = [other for other in garbage.owner_uids(body) if other != uid and cluster.store.by_uid(other)]
        if others:
            _put(cluster, ref, body, garbage.without_owner(body, uid), cause)
        else:
            _delete_dependent(cluster, ref, body, cause, view, "its owner is gone")


def _delete_dependent(cluster: Cluster, ref: Ref, body: Body, cause: int | None, view: World, why: str) -> None:
    """Delete a dependent. If that is refused, it is retried when the cause changes."""
    try:
        delete_for(cluster, Delete(body, why), COLLECTOR, cause, view)
    except Refused as refused:
        cluster.recorder.refused(COLLECTOR, "delete", ref, refused.refusal, cause)


def _remove_finalizer(cluster: Cluster, owner: Body, finalizer: str, cause: int | None) -> None:
    ref = cluster.ref_of(owner)
    live = cluster.store.get(ref)
    if live is not None:
        _put(cluster, ref, live, garbage.without_finalizer(live, finalizer), cause)


def _put(cluster: Cluster, ref: Ref, live: Body, body: Body, cause: int | None) -> None:
    stored = cluster.store.put(ref, body)
    index = cluster.recorder.note(COLLECTOR, "update", ref, "changed", cause=cause, before=live, after=stored)
    cluster.changed(ref, live, stored, index)
    finish(cluster, ref, stored, COLLECTOR, index)


def _admit(cluster: Cluster, kind: ServedKind, ref: Ref, live: Body, view: World, *, dry_run: bool = False) -> None:
    request = admission.request_for(cluster, "DELETE", kind, ref, {}, live, dry_run=dry_run)
    admission.mutate(request, view)
    admission.validate(request, view)


def _remove(cluster: Cluster, ref: Ref, actor: str, cause: int | None, why: str) -> None:
    before = cluster.store.get(ref)
    assert before is not None
    cluster.store.remove(ref)
    index = cluster.recorder.note(actor, "delete", ref, "deleted", why, cause, before)
    cluster.changed(ref, before, None, index)


def _grace(ref: Ref, live: Body, requested: int | None) -> int:
    """Only pods on a node have a grace period: the kubelet removes them."""
    if ref.group or ref.kind != "Pod" or not (live.get("spec") or {}).get("nodeName"):
        return 0
    if (live.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
        return 0
    if requested is not None:
        return requested
    return int((live.get("spec") or {}).get("terminationGracePeriodSeconds", GRACE_SECONDS))


def _namespace_content(ref: Ref, body: Body) -> bool:
    """A namespace is kept by spec.finalizers, which the namespace controller empties last."""
    return ref.kind == "Namespace" and not ref.group and bool((body.get("spec") or {}).get("finalizers"))


def _preconditions(kind: ServedKind, live: Body, request: Request) -> None:
    meta = live["metadata"]
    for field, (label, hint) in PRECONDITIONS.items():
        wanted, current = request.preconditions.get(field), meta[field]
        if not wanted or wanted == current:
            continue
        if (kind.group, kind.kind) in OWN_STRATEGY:
            why = f"Precondition failed: {label} in precondition: {wanted}, {label} in object meta: {current}"
            raise conflict(kind.plural, kind.group, meta["name"], why)
        why = f"the {label} in the precondition ({wanted}) does not match the {label} in record ({current}). {hint}"
        raise conflict(kind.kind, kind.group, meta["name"], why)


def _success(kind: ServedKind, live: Body) -> Body:
    details = {"name": live["metadata"]["name"], "kind": kind.plural, "uid": live["metadata"]["uid"]}
    if kind.group:
        details["group"] = kind.group
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
