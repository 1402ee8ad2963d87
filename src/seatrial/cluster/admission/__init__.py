"""Admission: checks and changes of an object beyond its schema. Refuses in the API server's words.

The order is that of `AllOrderedPlugins` in pkg/kubeapiserver/options/plugins.go of Kubernetes 1.34. Mutating admission
comes first. Between the two, the server generates the name and validates the object.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec.structs import replace

from seatrial.cluster.admission import classes, limits, pod_security, pods, quota, webhooks
from seatrial.cluster.admission.namespaces import lifecycle
from seatrial.cluster.admission.request import AdmissionRequest, Operation
from seatrial.kinds import World
from seatrial.kinds.tables.catalogue import ServedKind
from seatrial.kinds.webhooks.matching import NO_HOOKS
from seatrial.model.resource import Body, Ref

if TYPE_CHECKING:
    from seatrial.cluster.cluster import Cluster

__all__ = ["AdmissionRequest", "Operation", "admit_update", "mutate", "request_for", "validate"]

MUTATING: dict[tuple[str, str], tuple[Callable[[AdmissionRequest, World], Body], ...]] = {
    ("", "Pod"): (limits.default, pods.service_account, pods.priority, pods.runtime_class),
    ("", "PersistentVolumeClaim"): (classes.default_storage,),
    ("networking.k8s.io", "Ingress"): (classes.default_ingress,),
}
VALIDATING: dict[tuple[str, str], tuple[Callable[[AdmissionRequest, World], None], ...]] = {
    ("", "Namespace"): (pod_security.check_namespace,),
    ("", "PersistentVolumeClaim"): (limits.check_claim, classes.resize),
    ("", "Pod"): (limits.check_pod, pod_security.check_pod),
    ("scheduling.k8s.io", "PriorityClass"): (pods.one_default_priority,),
    **dict.fromkeys(pod_security.TEMPLATES, (pod_security.check_template,)),
}


def request_for(
    cluster: Cluster,
    operation: Operation,
    kind: ServedKind,
    ref: Ref,
    body: Body,
    old: Body | None = None,
    *,
    subresource: str = "",
    dry_run: bool = False,
    generated: bool = False,
) -> AdmissionRequest:
    """A write to this cluster. Warnings and notes go back to the cluster."""
    return AdmissionRequest(
        operation,
        kind,
        ref,
        body,
        old,
        subresource,
        dry_run,
        generated,
        cluster.minor,
        () if cluster.hooks is NO_HOOKS else cluster.discovery.versions_of(kind.group, kind.kind),
        cluster.hooks,
        cluster.warn,
        cluster.notes.append,
        cluster.unanswered.append,
        cluster.repairing.answers,
    )


def admit_update(cluster: Cluster, kind: ServedKind, ref: Ref, live: Body, body: Body, world: World) -> Body:
    """An update by a controller: only webhooks apply."""
    if cluster.hooks is NO_HOOKS:
        return body
    operation, subresource = _operation_of(ref, live, body)
    request = request_for(cluster, operation, kind, ref, body, live, subresource=subresource)
    body = mutate(request, world)
    validate(replace(request, body=body), world)
    return body


def mutate(request: AdmissionRequest, world: World) -> Body:
    """The object with the changes of admission; raises `Refused` if it may not be written."""
    lifecycle(request, world)
    for plugin in MUTATING.get(request.group_kind, ()) if _is_whole_object(request) else ():
        request = replace(request, body=plugin(request, world))
    webhooks.call_webhooks(request, "mutating", world)
    return request.body


def validate(request: AdmissionRequest, world: World) -> None:
    """Raise `Refused` if the object may not be stored like this."""
    for plugin in VALIDATING.get(request.group_kind, ()) if _is_whole_object(request) else ():
        plugin(request, world)
    webhooks.ask_policies(request, world)
    webhooks.call_webhooks(request, "validating", world)
    quota.check(request, world)


def _is_whole_object(request: AdmissionRequest) -> bool:
    """Whether the object itself is created or updated, not a subresource and not deleted."""
    return request.operation != "DELETE" and not request.subresource


def _operation_of(ref: Ref, live: Body, body: Body) -> tuple[Operation, str]:
    """The operation and subresource of a controller's update: binding a pod, finalizing a namespace."""
    before, after = live.get("spec") or {}, body.get("spec") or {}
    if ref.kind == "Pod" and after.get("nodeName") and not before.get("nodeName"):
        return "CREATE", "binding"
    if ref.kind == "Namespace" and before.get("finalizers") != after.get("finalizers"):
        return "UPDATE", "finalize"
    return "UPDATE", ""
