"""Scheduling of pods, and the scheduler's errors. Knows volumes, not resources or affinity.

Error texts from pkg/scheduler/framework (types.go, plugins/volumebinding, plugins/volumerestrictions) of Kubernetes
1.34.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from seatrial.kinds import Acts, Create, Emit, Status, Update, World
from seatrial.kinds.core import conditions
from seatrial.kinds.core.objectmeta import is_terminating, namespace_of
from seatrial.kinds.workloads.pod_template import claims_of
from seatrial.kinds.workloads.pods import is_finished
from seatrial.model.resource import Body, Ref, dig, listed, name_of

PREEMPTION_NOT_HELPFUL = "Preemption is not helpful for scheduling"
NO_VICTIMS = "No preemption victims found for incoming pod"
CLAIM_IN_USE = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)

ANY_CLAIM = Ref("PersistentVolumeClaim", "", "")
"""The key of a PersistentVolume without a claimRef."""

PINNED = (
    "affinity",
    "nodeAffinity",
    "requiredDuringSchedulingIgnoredDuringExecution",
    "nodeSelectorTerms",
    0,
    "matchFields",
)
"""Where a DaemonSet writes the node of its pod."""


def schedule(pod: Body, world: World) -> Acts:
    """Bind a pod to a node once its PVCs allow it, or report why not."""
    yield from _ephemeral_claims(pod, world)
    nodes = [name_of(node) for node in world.all("Node") if not dig(node, "spec", "unschedulable")]
    if unfit := _unfit(pod, world, len(nodes)):
        failed = conditions.condition(pod, "PodScheduled", "False", "Unschedulable", unfit.message)
        yield Status(pod, {**(pod.get("status") or {}), "phase": "Pending", "conditions": [failed]})
        yield Emit(pod, "FailedScheduling", unfit.message, missing=unfit.missing, held_by=unfit.held_by)
        return
    if any(claim is None or not is_bound(claim) for _, claim in claims(pod, world)):
        return
    bound = {**pod["spec"], "nodeName": _node_for(pod, world, nodes)}
    scheduled = [conditions.condition(pod, "PodScheduled", "True")]
    status = {**(pod.get("status") or {}), "phase": "Pending", "conditions": scheduled}
    yield Update({**pod, "spec": bound, "status": status})


class Unschedulable(Struct, frozen=True):
    """Why no node can take a pod."""

    message: str
    missing: tuple[Ref, ...] = ()
    held_by: tuple[Ref, ...] = ()
    """The pods that use a PVC which only one pod may use."""


def blocked(pod: Body, world: World) -> Unschedulable | None:
    """Why no node can take the pod yet, in the words of the VolumeBinding plugin; None if one can."""
    unbound = False
    for name, claim in claims(pod, world):
        if claim is None:
            missing = Ref("PersistentVolumeClaim", namespace_of(pod), name)
            return Unschedulable(f'persistentvolumeclaim "{name}" not found', (missing,))
        if is_terminating(claim):
            return Unschedulable(f'persistentvolumeclaim "{name}" is being deleted')
        unbound = unbound or not (is_bound(claim) or waits_for_consumer(claim, world))
    return Unschedulable("pod has unbound immediate PersistentVolumeClaims") if unbound else None


def claims(pod: Body, world: World) -> Iterator[tuple[str, Body | None]]:
    """The PVCs that a pod uses, by name."""
    for _, name in claims_of(pod.get("spec") or {}, name_of(pod)):
        yield name, world.get(Ref("PersistentVolumeClaim", namespace_of(pod), name))


def is_bound(claim: Body) -> bool:
    return bool(dig(claim, "status", "phase") == "Bound")


def waits_for_consumer(claim: Body, world: World) -> bool:
    name = dig(claim, "spec", "storageClassName")
    found = world.get(Ref("StorageClass", "", str(name), "storage.k8s.io")) if name else None
    return found is not None and found.get("volumeBindingMode") == "WaitForFirstConsumer"


def claim_of_volume(body: Body) -> Iterator[Ref]:
    """The PVC that a PersistentVolume names, or ANY_CLAIM; nothing for other kinds."""
    if (body.get("apiVersion"), body.get("kind")) == ("v1", "PersistentVolume"):
        named = dig(body, "spec", "claimRef") or {}
        yield Ref(ANY_CLAIM.kind, str(named.get("namespace") or ""), str(named.get("name") or ""))


def others_using(claim: str, pod: Body, world: World) -> list[Body]:
    """Unfinished pods on a node that use the same PVC."""
    return [
        other
        for other in world.using(Ref("PersistentVolumeClaim", namespace_of(pod), claim))
        if name_of(other) != name_of(pod) and dig(other, "spec", "nodeName") and not is_finished(other)
    ]


def has_mode(claim: Body, *modes: str) -> bool:
    return any(mode in modes for mode in listed(claim, "spec", "accessModes"))


def _ephemeral_claims(pod: Body, world: World) -> Acts:
    """The ephemeral-volume controller creates a PVC for each such volume, owned by the pod."""
    for volume in listed(pod, "spec", "volumes"):
        template = dig(volume, "ephemeral", "volumeClaimTemplate")
        if not isinstance(template, dict):
            continue
        ref = Ref("PersistentVolumeClaim", namespace_of(pod), f"{name_of(pod)}-{volume.get('name')}")
        if world.get(ref) is None:
            meta = {**(template.get("metadata") or {}), "name": ref.name, "namespace": ref.namespace}
            claim = {"apiVersion": "v1", "kind": ref.kind, "metadata": meta, "spec": template.get("spec") or {}}
            yield Create(claim, owner=pod)


def _unfit(pod: Body, world: World, nodes: int) -> Unschedulable | None:
    """The message for a pod that fits no node; None if one fits."""
    if nodes == 0:
        return Unschedulable("no nodes available to schedule pods")
    available = f"0/{nodes} nodes are available:"
    if why := blocked(pod, world):
        message = f"{available} {why.message}. preemption: {available} {nodes} {PREEMPTION_NOT_HELPFUL}."
        return replace(why, message=message)
    for name, claim in claims(pod, world):
        holders = others_using(name, pod, world) if claim and has_mode(claim, "ReadWriteOncePod") else []
        if holders:
            message = f"{available} {nodes} {CLAIM_IN_USE}. preemption: {available} {nodes} {NO_VICTIMS}."
            return Unschedulable(
                message, held_by=tuple(Ref("Pod", namespace_of(pod), name_of(other)) for other in holders)
            )
    return None


def _node_for(pod: Body, world: World, nodes: list[str]) -> str:
    """A pinned pod goes to its node. Others go to the node of their volume, or in the worst case to another one."""
    for field in listed(pod, "spec", *PINNED):
        if field.get("key") == "metadata.name" and dig(field, "values", 0) in nodes:
            return str(field["values"][0])
    attached = {
        str(dig(other, "spec", "nodeName"))
        for name, claim in claims(pod, world)
        if claim is not None and has_mode(claim, "ReadWriteOnce")
        for other in others_using(name, pod, world)
    }
    wanted = [node for node in nodes if (node in attached) != world.worst_case] if attached else nodes
    return (wanted or nodes)[0]
