"""Updates of an existing object: what may change, what is kept, what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from msgspec import structs

from seatrial import kinds
from seatrial.cluster import admission
from seatrial.cluster.admission.allocation import refuse_allocated
from seatrial.cluster.fields.managed import same_but_for_times, track_update
from seatrial.cluster.refusal import conflict, invalid, modified
from seatrial.cluster.request import Request
from seatrial.cluster.validation import pipeline
from seatrial.cluster.validation.custom import with_required
from seatrial.cluster.validation.expressions import rule_problems
from seatrial.cluster.verbs import conversion
from seatrial.cluster.verbs.sizes import refuse_large
from seatrial.kinds import World
from seatrial.kinds.core.crd import NO_PEM
from seatrial.kinds.tables.catalogue import CATALOGUE, ServedKind
from seatrial.kinds.tables.empty_status import EMPTY_STATUS
from seatrial.model.resource import Body, Ref, dig, metadata, name_of

if TYPE_CHECKING:
    from seatrial.cluster.cluster import Cluster

KEPT = ("uid", "creationTimestamp", "generation", "deletionTimestamp", "deletionGracePeriodSeconds")
"""Metadata that only the server writes."""

# Built-in kinds that cannot be updated without a resourceVersion; nor can custom resources. From
# `AllowUnconditionalUpdate` under pkg/registry of Kubernetes 1.34, checked with a real API server.
CONDITIONAL = frozenset(
    (
        "APIService",
        "CSIDriver",
        "CustomResourceDefinition",
        "Lease",
        "MutatingWebhookConfiguration",
        "PodDisruptionBudget",
        "RuntimeClass",
        "ValidatingAdmissionPolicy",
        "ValidatingWebhookConfiguration",
    )
)


def change(cluster: Cluster, kind: ServedKind, ref: Ref, live: Body, body: Body, request: Request, verb: str) -> Body:
    """Validate a changed object against the live one, and store it if it differs."""
    version = metadata(body).get("resourceVersion")
    if not version and verb == "update" and not request.subresource and _is_conditional(kind):
        message = "metadata.resourceVersion: Invalid value: 0: must be specified for an update"
        raise invalid(kind.plural, kind.group, ref.name, [message])
    if version and str(version) != live["metadata"]["resourceVersion"]:
        raise modified(kind.plural, kind.group, ref.name)
    if metadata(body).get("uid") not in (None, "", live["metadata"]["uid"]):
        wanted, current = metadata(body)["uid"], live["metadata"]["uid"]
        why = f"Precondition failed: UID in precondition: {wanted}, UID in object meta: {current}"
        raise conflict(kind.plural, kind.group, ref.name, why)
    body = _with_kept(live, {**body, "apiVersion": live["apiVersion"]})
    body = _limited_to_subresource(kind, live, body, request.subresource)
    body = defaulted(kind, body)
    view, subresource = cluster.view(), request.subresource
    admission_request = admission.request_for(
        cluster, "UPDATE", kind, ref, body, live, subresource=subresource, dry_run=request.dry_run
    )
    body = admission.mutate(admission_request, view)
    if verb != "apply":
        body = track_update(
            live,
            body,
            manager=request.field_manager or request.actor,
            schema=cluster.schema_of(kind),
            time=cluster.store.now(),
            subresource=subresource,
        )
    refuse_allocated(kind, body, live, view, cluster.minor)
    body = prepared(kind, body, live)
    _refuse_bad_change(cluster, kind, live, body, subresource)
    admission.validate(structs.replace(admission_request, body=body), view)
    conversion.write(cluster, kind, ref, view)
    if request.dry_run:
        return body
    refuse_large(body, custom=cluster.is_custom(kind))
    return _store(cluster, kind, ref, live, body, request.actor, verb, request.cause)


def replace(cluster: Cluster, body: Body, actor: str, cause: int | None, view: World, *, manager: str = "") -> None:
    """Replace an object by a controller's version; `manager` owns what changes."""
    kind = cluster.kind_of(body)
    ref = named_ref(kind, body)
    live = cluster.store.get(ref)
    if live is None or live == body:
        return
    body = admission.admit_update(cluster, kind, ref, live, body, view)
    if manager:
        schema = cluster.schema_of(kind)
        body = track_update(live, body, manager=manager, schema=schema, time=cluster.store.now())
    _store(cluster, kind, ref, live, _with_kept(live, body), actor, "update", cause)


def put_status(cluster: Cluster, body: Body, status: Body, actor: str, cause: int | None) -> None:
    """Set the status of an object if it differs."""
    ref = cluster.ref_of(body)
    live = cluster.store.get(ref)
    if live is None:
        return
    schema = cluster.custom_schema_of(cluster.kind_of(live))
    status = with_required(status, dig(schema.node, "properties", "status") or {}) if schema else status
    if live.get("status") == status:
        return
    stored = cluster.store.put(ref, {**live, "status": status})
    index = cluster.recorder.note(actor, "status", ref, "changed", cause=cause, before=live, after=stored)
    cluster.changed(ref, live, stored, index)


def _store(
    cluster: Cluster, kind: ServedKind, ref: Ref, live: Body, body: Body, actor: str, verb: str, cause: int | None
) -> Body:
    """Store a changed object, count its generation, and finish a deletion that waited for this change."""
    if live == body or same_but_for_times(live, body):
        cluster.recorder.note(actor, verb, ref, "unchanged", "; ".join(cluster.notes), cause, live, live)
        return live
    if "generation" in live["metadata"] and _spec_of(live) != _spec_of(body):
        meta = {**body["metadata"], "generation": live["metadata"]["generation"] + 1}
        body = {**body, "metadata": meta}
    stored = cluster.store.put(ref, body)
    notes, unanswered = "; ".join(cluster.notes), tuple(cluster.unanswered)
    index = cluster.recorder.note(actor, verb, ref, "changed", notes, cause, live, stored, unanswered)
    cluster.changed(ref, live, stored, index)
    cluster.finish_deletion(ref, stored, actor, index)
    return stored


def defaulted(kind: ServedKind, body: Body) -> Body:
    known = kinds.known().get((kind.group, kind.kind))
    return known.default(body) if known is not None and known.default is not None else body


def prepared(kind: ServedKind, body: Body, old: Body | None) -> Body:
    empty = EMPTY_STATUS.get((kind.group, kind.kind))
    if old is None and empty is not None and "status" not in body:
        body = {**body, "status": empty}
    known = kinds.known().get((kind.group, kind.kind))
    return known.prepare(body, old) if known is not None and known.prepare is not None else body


def named_ref(kind: ServedKind, body: Body) -> Ref:
    return Ref(kind.kind, metadata(body).get("namespace", "") if kind.namespaced else "", name_of(body), kind.group)


def _refuse_bad_change(cluster: Cluster, kind: ServedKind, live: Body, body: Body, subresource: str) -> None:
    """Refuse an invalid object, and changes that are not allowed."""
    known = kinds.known().get((kind.group, kind.kind))
    causes = list(_added_finalizers(live, body))
    unchangeable: list[str] = []
    if subresource != "status":
        custom = cluster.custom_schema_of(kind)
        causes += pipeline.problems_in_words_of(cluster.minor, kind, body, custom)
        if custom is not None and not causes:
            causes += rule_problems(body, live, custom.node)
            unchangeable += set(causes).difference(rule_problems(body, None, custom.node)) if causes else ()
    if known is not None and known.immutable is not None:
        causes += (immutable_causes := list(known.immutable(live, body, cluster.minor)))
        # A CRD that drops a version is refused because of its status, which a storage migration changes, and one whose
        # CA is no certificate because of that value.
        unchangeable += (cause for cause in immutable_causes if not cause.startswith("status.") and NO_PEM not in cause)
    if causes:
        raise invalid(kind.kind, kind.group, name_of(live), causes, "unchangeable" if unchangeable else "")


def _is_conditional(kind: ServedKind) -> bool:
    return kind.kind in CONDITIONAL or (kind.group, kind.kind) not in CATALOGUE


def _added_finalizers(live: Body, body: Body) -> Iterator[str]:
    """While an object is being deleted, finalizers may be removed but not added.

    The API server validates metadata twice, hence the duplicate error.
    """
    before, after = (metadata(each).get("finalizers") or () for each in (live, body))
    added = sorted(set(after) - set(before))
    if added and metadata(live).get("deletionTimestamp"):
        message = "no new finalizers can be added if the object is being deleted, found new finalizers"
        shown = ", ".join(f'"{finalizer}"' for finalizer in added)
        yield from [f"metadata.finalizers: Forbidden: {message} []string{{{shown}}}"] * 2


def _with_kept(live: Body, body: Body) -> Body:
    meta = {**metadata(body)}
    for key in KEPT:
        if key in live["metadata"]:
            meta[key] = live["metadata"][key]
        else:
            meta.pop(key, None)
    meta["resourceVersion"] = live["metadata"]["resourceVersion"]
    return {**body, "metadata": meta}


def _limited_to_subresource(kind: ServedKind, live: Body, body: Body, subresource: str) -> Body:
    """The status is only written through its subresource, which writes nothing else."""
    if subresource == "status":
        meta = {**live["metadata"]}
        if "managedFields" in body["metadata"]:
            meta["managedFields"] = body["metadata"]["managedFields"]
        return {**live, "metadata": meta, "status": body.get("status", {})}
    if "status" not in kind.subresources or subresource:
        return body
    rest = {key: value for key, value in body.items() if key != "status"}
    return {**rest, "status": live["status"]} if "status" in live else rest


def _spec_of(body: Body) -> dict[str, Any]:
    return {key: value for key, value in body.items() if key not in ("metadata", "status")}
