"""Create, update, patch: from a request body to a stored object. Knows kinds only through `kinds`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import structs

from seatrial.cluster import admission
from seatrial.cluster.admission.allocation import refuse_allocated
from seatrial.cluster.fields.managed import server_side_apply, track_update
from seatrial.cluster.refusal import (
    Refused,
    already_exists,
    being_deleted,
    forbidden,
    invalid,
    not_found,
)
from seatrial.cluster.request import Reply, Request
from seatrial.cluster.validation import pipeline
from seatrial.cluster.validation.custom import rules_in_cel
from seatrial.cluster.validation.expressions import is_evaluated, rule_problems
from seatrial.cluster.verbs import conversion, reads
from seatrial.cluster.verbs.changes import change, defaulted, named_ref, prepared
from seatrial.cluster.verbs.patch import json_patch, merge_patch, strategic_patch
from seatrial.cluster.verbs.request_object import as_sent, named, object_of, refuse_another_object
from seatrial.cluster.verbs.scale import paths_of, scale_of, scaled
from seatrial.cluster.verbs.sizes import refuse_large
from seatrial.cluster.watch import in_version
from seatrial.kinds import World
from seatrial.kinds.core.objectmeta import is_terminating
from seatrial.kinds.tables.catalogue import ServedKind
from seatrial.model.resource import Body, Ref, dig, metadata, name_of, written

if TYPE_CHECKING:
    from seatrial.cluster.cluster import Cluster

SERVER_FIELDS = ("deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "generation")
DRY_RUN = "dry run"
"""The verb of dry runs in the timeline."""
# Built-in kinds whose strategy counts generations; custom resources always do. From `PrepareForCreate` under
# pkg/registry of Kubernetes 1.34.
GENERATIONS = frozenset(
    (
        "CronJob",
        "CustomResourceDefinition",
        "DaemonSet",
        "Deployment",
        "EndpointSlice",
        "FlowSchema",
        "Ingress",
        "IngressClass",
        "Job",
        "MutatingWebhookConfiguration",
        "NetworkPolicy",
        "Pod",
        "PodDisruptionBudget",
        "PriorityClass",
        "PriorityLevelConfiguration",
        "ReplicaSet",
        "ReplicationController",
        "StatefulSet",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
        "ValidatingWebhookConfiguration",
    )
)


def create(cluster: Cluster, kind: ServedKind, request: Request) -> Reply:
    """Answer a POST."""
    ref = Ref(kind.kind, request.namespace if kind.namespaced else "", "", kind.group)
    try:
        body = object_of(kind, request)
        ref = Ref(ref.kind, ref.namespace, name_of(body) or str(metadata(body).get("generateName", "")), ref.group)
        body = _decoded(cluster, kind, body, request)
        manager = request.field_manager
        stored = create_object(
            cluster,
            kind,
            body,
            actor=request.actor,
            cause=request.cause,
            view=cluster.view(),
            manager=manager,
            dry=request.dry_run,
        )
    except Refused as refused:
        _note_refusal(cluster, request, "create", ref, refused)
        raise
    return Reply(201, in_version(stored, kind))


def as_written(
    cluster: Cluster, kind: ServedKind, request: Request, write: Callable[[Cluster, ServedKind, Request], Reply]
) -> Request:
    """The request with the object as it is written, unless a CRD accepts values that no reader expects."""
    raw = written(request.body)
    if raw is None:
        return request
    sent = structs.replace(request, body=raw)
    try:
        write(cluster, kind, structs.replace(sent, dry_run=True, unheard=True))
    except Refused:
        return sent
    return request


def _note_refusal(cluster: Cluster, request: Request, verb: str, ref: Ref, refused: Refused) -> None:
    """A dry run is recorded as one. Probes of the rehearsal itself are not recorded."""
    if not request.unheard:
        verb = DRY_RUN if request.dry_run else verb
        cluster.recorder.refused(request.actor, verb, ref, refused.refusal, request.cause)


def create_object(
    cluster: Cluster,
    kind: ServedKind,
    body: Body,
    *,
    actor: str,
    cause: int | None,
    view: World,
    manager: str = "",
    verb: str = "create",
    dry: bool = False,
    valid: bool = False,
) -> Body:
    """Name, default, admit and store a new object. Those of controllers are `valid`."""
    meta = metadata(body)
    if meta.get("resourceVersion"):
        raise Refused(500, "", "resourceVersion should not be set on objects to be created")
    generated = not meta.get("name")
    body = named(cluster, kind, body)
    ref = named_ref(kind, body)
    if cluster.is_custom(kind) and is_terminating(cluster.crd_of(kind)):
        why = "create not allowed while custom resource definition is terminating"
        raise forbidden(kind.plural, kind.group, ref.name, why, terminating=cluster.crd_ref(kind))
    if "status" in kind.subresources and actor != "kubernetes":
        body = {key: value for key, value in body.items() if key != "status"}
    body = defaulted(kind, body)
    admission_request = admission.request_for(cluster, "CREATE", kind, ref, body, dry_run=dry, generated=generated)
    body = admission.mutate(admission_request, view)
    if not valid:
        refuse_allocated(kind, body, None, view, cluster.minor)
        pipeline.refuse_invalid(kind, body, cluster.custom_schema_of(kind), cluster.minor)
        _check_cel_rules(cluster, kind, body)
    admission.validate(structs.replace(admission_request, body=body), view)
    if (existing := cluster.store.get(ref)) is not None:
        if is_terminating(existing):
            raise being_deleted(kind.plural, kind.group, ref.name, ref)
        raise already_exists(kind.plural, kind.group, ref.name)
    body = {**body, "metadata": _new_metadata(cluster, kind, ref, metadata(body))}
    if verb != "apply":
        schema = cluster.schema_of(kind)
        body = track_update(None, body, manager=manager or actor, schema=schema, time=cluster.store.now())
    # Values that the server generates, such as a clusterIP, have no manager.
    body = {**_default_status(cluster, kind), **prepared(kind, body, None)}
    conversion.write(cluster, kind, ref, view)
    if dry:
        return body
    if not valid:
        refuse_large(body, custom=cluster.is_custom(kind))
    stored = cluster.store.put(ref, body)
    notes, unanswered = "; ".join(cluster.notes), tuple(cluster.unanswered)
    index = cluster.recorder.note(actor, verb, ref, "created", notes, cause, after=stored, unanswered=unanswered)
    cluster.changed(ref, None, stored, index)
    for uid in cluster.missing_owners(stored):
        cluster.controllers.orphaned(uid, index)
    return stored


def _default_status(cluster: Cluster, kind: ServedKind) -> Body:
    """The status that a CRD gives to an object that has none: defaults are set again when it is read from the store."""
    schema = cluster.custom_schema_of(kind)
    default = dig(schema.node, "properties", "status", "default") if schema else None
    return {"status": default} if default is not None else {}


def _new_metadata(cluster: Cluster, kind: ServedKind, ref: Ref, meta: Body) -> Body:
    """The metadata of a new object. Server-side fields are set by the server only."""
    given = {key: value for key, value in meta.items() if key not in SERVER_FIELDS}
    fresh = {**given, "uid": cluster.store.new_uid(ref), "creationTimestamp": cluster.store.now()}
    return {**fresh, "generation": 1} if _counts_generations(cluster, kind) else fresh


def _check_cel_rules(cluster: Cluster, kind: ServedKind, body: Body) -> None:
    """Refuse a new custom resource that violates its CRD's CEL rules, and warn of rules that were not evaluated."""
    schema = cluster.custom_schema_of(kind)
    if schema is None:
        return
    causes = list(rule_problems(body, None, schema.node))
    if causes:
        raise invalid(kind.kind, kind.group, name_of(body), causes)
    not_evaluated = sum(not is_evaluated(rule, node) for rule, node in rules_in_cel(schema.node))
    if not_evaluated:
        rules = "1 rule in CEL is" if not_evaluated == 1 else f"{not_evaluated} rules in CEL are"
        cluster.warn(f"seatrial: {rules} not evaluated for {kind.plural}.{kind.group}; assumed to pass")


def create_for(cluster: Cluster, body: Body, owner: Body | None, actor: str, cause: int | None, view: World) -> None:
    """Create an object for a controller, owned by `owner`."""
    kind = cluster.kind_of(body)
    if owner is not None:
        meta = {**metadata(body), "ownerReferences": [_owner_reference(owner)]}
        if kind.namespaced and metadata(owner).get("namespace"):
            meta.setdefault("namespace", metadata(owner)["namespace"])
        body = {**body, "metadata": meta}
    create_object(cluster, kind, body, actor=actor, cause=cause, view=view, valid=cause is not None)


def update(cluster: Cluster, kind: ServedKind, request: Request) -> Reply:
    """Answer a PUT."""
    ref = reads.ref_for(kind, request)
    try:
        live = _live(cluster, kind, ref)
        body = object_of(kind, request)
        if request.subresource == "scale":
            body = scaled(live, body, paths_of(cluster, kind))
        body = _decoded(cluster, kind, body, request)
        stored = change(cluster, kind, ref, live, body, request, "update")
    except Refused as refused:
        _note_refusal(cluster, request, "update", ref, refused)
        raise
    return Reply(200, _shown(cluster, kind, stored, request))


def patch(cluster: Cluster, kind: ServedKind, request: Request) -> Reply:
    """Answer a PATCH of any of the four types."""
    verb = "apply" if request.patch_type == "apply" else "patch"
    ref = reads.ref_for(kind, request)
    try:
        if verb == "apply":
            return _apply(cluster, kind, ref, request)
        live = _live(cluster, kind, ref)
        body = _patched(cluster, kind, _shown(cluster, kind, live, request), request)
        if request.subresource == "scale":
            body = scaled(live, body, paths_of(cluster, kind))
        body = _in_namespace(kind, body, ref)
        refuse_another_object(kind, live, body, request)
        body = _decoded_patch(cluster, kind, body, request)
        stored = change(cluster, kind, ref, live, body, request, verb)
    except Refused as refused:
        _note_refusal(cluster, request, verb, ref, refused)
        raise
    return Reply(200, _shown(cluster, kind, stored, request))


def _apply(cluster: Cluster, kind: ServedKind, ref: Ref, request: Request) -> Reply:
    """Server-side apply: creates a missing object, or merges into the existing one by field ownership."""
    if not request.field_manager:
        message = "fieldManager: Required value: is required for apply patch"
        raise invalid("PatchOptions", "meta.k8s.io", "", [message])
    applied = as_sent(object_of(kind, request), request)
    live = cluster.store.get(ref)
    shown = None
    if live is not None:
        conversion.read(cluster, kind, ref)
        refuse_another_object(kind, live, applied, request)
        shown = in_version(live, kind)
    merged = server_side_apply(
        shown,
        applied,
        manager=request.field_manager,
        force=request.force,
        schema=cluster.schema_of(kind),
        time=cluster.store.now(),
        subresource=request.subresource,
    )
    merged = pipeline.applied(kind, merged, cluster.kube_version, cluster.custom_schema_of(kind), shown).body
    if live is None:
        # The applied object may have been read before its deletion: ignore its resourceVersion.
        meta = {**metadata(merged), "namespace": ref.namespace} if ref.namespace else {**metadata(merged)}
        meta.pop("resourceVersion", None)
        merged = {**merged, "metadata": meta}
        created = create_object(
            cluster,
            kind,
            merged,
            actor=request.actor,
            cause=request.cause,
            view=cluster.view(),
            verb="apply",
            dry=request.dry_run,
        )
        return Reply(201, in_version(created, kind))
    stored = change(cluster, kind, ref, live, merged, request, "apply")
    return Reply(200, in_version(stored, kind))


def _shown(cluster: Cluster, kind: ServedKind, body: Body, request: Request) -> Body:
    return scale_of(body, paths_of(cluster, kind)) if request.subresource == "scale" else in_version(body, kind)


def _decoded(cluster: Cluster, kind: ServedKind, body: Body, request: Request) -> Body:
    """The object as the server decodes it. Unknown fields are refused or warned of."""
    custom = cluster.custom_schema_of(kind)
    read = pipeline.decoded(kind, body, cluster.kube_version, custom, request.field_validation, request.duplicates)
    for warning in read.warnings:
        cluster.warn(warning)
    return read.body


def _decoded_patch(cluster: Cluster, kind: ServedKind, body: Body, request: Request) -> Body:
    """A patched object as the server decodes it."""
    read = pipeline.patched(
        kind,
        body,
        request.body,
        request.patch_type or "merge",
        cluster.kube_version,
        cluster.custom_schema_of(kind),
        request.field_validation,
    )
    for warning in read.warnings:
        cluster.warn(warning)
    return read.body


def _live(cluster: Cluster, kind: ServedKind, ref: Ref) -> Body:
    live = cluster.store.get(ref)
    if live is None:
        raise not_found(kind.plural, kind.group, ref.name)
    conversion.read(cluster, kind, ref)
    return live


def _in_namespace(kind: ServedKind, body: Body, ref: Ref) -> Body:
    """A patch cannot take the namespace away: the API server sets that of the request.

    `EnsureObjectNamespaceMatchesRequestNamespace` in apiserver/pkg/registry/rest/meta.go.
    """
    if not kind.namespaced or metadata(body).get("namespace"):
        return body
    return {**body, "metadata": {**metadata(body), "namespace": ref.namespace}}


def _patched(cluster: Cluster, kind: ServedKind, live: Body, request: Request) -> Body:
    match request.patch_type:
        case "json":
            return json_patch(live, request.body)
        case "merge":
            return merge_patch(live, request.body)
        case _:
            return strategic_patch(live, request.body, cluster.builtin_schema_of(kind))


def _counts_generations(cluster: Cluster, kind: ServedKind) -> bool:
    return kind.kind in GENERATIONS or cluster.is_custom(kind)


def _owner_reference(owner: Body) -> Body:
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
