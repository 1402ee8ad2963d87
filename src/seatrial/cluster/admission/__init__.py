"""What the API server asks of an object before it takes it in, beyond its shape. Refuses in the server's words.

The order is that of `AllOrderedPlugins` in pkg/kubeapiserver/options/plugins.go of Kubernetes 1.34. What changes the
object comes first; between the two, the server makes up its name and looks at its shape.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec.structs import replace

from seatrial.cluster.admission import classes, limits, pod_security, pods, quota, webhooks
from seatrial.cluster.admission.asked import Asked, Operation
from seatrial.cluster.admission.namespaces import lifecycle
from seatrial.kinds import World
from seatrial.kinds.tables.catalogue import ServedKind
from seatrial.kinds.webhooks.matching import NO_HOOKS
from seatrial.model.resource import Body, Ref

if TYPE_CHECKING:
    from seatrial.cluster.cluster import Cluster

__all__ = ["Asked", "Operation", "asked", "controllers_change", "mutate", "validate"]

MUTATING: dict[tuple[str, str], tuple[Callable[[Asked, World], Body], ...]] = {
    ("", "Pod"): (limits.default, pods.service_account, pods.priority, pods.runtime_class),
    ("", "PersistentVolumeClaim"): (classes.default_storage,),
    ("networking.k8s.io", "Ingress"): (classes.default_ingress,),
}
VALIDATING: dict[tuple[str, str], tuple[Callable[[Asked, World], None], ...]] = {
    ("", "Namespace"): (pod_security.check_namespace,),
    ("", "PersistentVolumeClaim"): (limits.check_claim, classes.resize),
    ("", "Pod"): (limits.check_pod, pod_security.check_pod),
    ("scheduling.k8s.io", "PriorityClass"): (pods.one_default_priority,),
    **dict.fromkeys(pod_security.TEMPLATES, (pod_security.check_template,)),
}


def asked(
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
) -> Asked:
    """A write to this cluster, which is told what comes of it."""
    return Asked(
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
    )


def controllers_change(cluster: Cluster, kind: ServedKind, ref: Ref, live: Body, body: Body, world: World) -> Body:
    """What a controller changes: only webhooks have a say in it."""
    if cluster.hooks is NO_HOOKS:
        return body
    operation, subresource = _part_changed(ref, live, body)
    write = asked(cluster, operation, kind, ref, body, live, subresource=subresource)
    body = mutate(write, world)
    validate(replace(write, body=body), world)
    return body


def mutate(asked: Asked, world: World) -> Body:
    """The object with what admission adds to it; raises `Refused` where it may not be written."""
    lifecycle(asked, world)
    for plugin in MUTATING.get(asked.of, ()) if _is_of_the_object(asked) else ():
        asked = replace(asked, body=plugin(asked, world))
    webhooks.ask(asked, "mutating", world)
    return asked.body


def validate(asked: Asked, world: World) -> None:
    """Raise `Refused` where the object, as it would be stored, may not be written."""
    for plugin in VALIDATING.get(asked.of, ()) if _is_of_the_object(asked) else ():
        plugin(asked, world)
    webhooks.note_policies(asked, world)
    webhooks.ask(asked, "validating", world)
    quota.check(asked, world)


def _is_of_the_object(asked: Asked) -> bool:
    """Whether the object itself is made or changed: neither a part of it, nor taken away."""
    return asked.operation != "DELETE" and not asked.subresource


def _part_changed(ref: Ref, live: Body, body: Body) -> tuple[Operation, str]:
    """What a controller asks for that has a door of its own: a pod is bound, a namespace let go."""
    before, after = live.get("spec") or {}, body.get("spec") or {}
    if ref.kind == "Pod" and after.get("nodeName") and not before.get("nodeName"):
        return "CREATE", "binding"
    if ref.kind == "Namespace" and before.get("finalizers") != after.get("finalizers"):
        return "UPDATE", "finalize"
    return "UPDATE", ""
