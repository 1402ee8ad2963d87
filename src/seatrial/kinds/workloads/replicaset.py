"""ReplicaSet and ReplicationController: a number of identical pods.

From pkg/controller/replicaset of Kubernetes 1.34.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator

from seatrial.kinds import Act, Acts, Create, Delete, Emit, Kind, Status, World, always
from seatrial.kinds.core import conditions
from seatrial.kinds.core.conditions import condition, with_condition, without_condition, without_zeros
from seatrial.kinds.core.immutable import NEWEST, immutable_field, selector
from seatrial.kinds.core.objectmeta import adopt, generation_of, is_terminating, with_metadata
from seatrial.kinds.core.selection import fits
from seatrial.kinds.workloads.pod_template import default_template, template_needs
from seatrial.kinds.workloads.pods import is_active, is_ready, pod_from, worst_first
from seatrial.model.refusal import Refusal
from seatrial.model.resource import Body, dig, labels_of


def behave(owner: Body, world: World) -> Acts:
    yield from adopt(owner, world, "Pod", _selector(owner))
    refusal = ""
    if not is_terminating(owner):
        refusal = yield from _manage(owner, world)
    active = [pod for pod in world.owned(owner, "Pod") if is_active(pod)]
    yield Status(owner, _status(owner, active, refusal))


def default(owner: Body) -> Body:
    spec = {"replicas": 1, **(owner.get("spec") or {})}
    template = spec.get("template")
    if not isinstance(template, dict):
        return {**owner, "spec": spec}
    spec["template"] = default_template(template)
    labels = labels_of(template)
    if owner.get("kind") == "ReplicationController" and labels:
        spec.setdefault("selector", labels)
        owner = with_metadata(owner, labels=labels_of(owner) or labels)
    return {**owner, "spec": spec}


def immutable(old: Body, new: Body, minor: int = NEWEST, /) -> Iterator[str]:
    yield from immutable_field(old, new, "spec.selector", minor, selector)


def ready(owner: Body) -> bool:
    return int(dig(owner, "status", "readyReplicas") or 0) >= _replicas(owner)


def refused_creation(owner: Body, refusal: Refusal) -> Iterator[Emit]:
    """The Event of ReplicaSets, Jobs and DaemonSets whose pod the API server refuses."""
    if not namespace_terminates(refusal):
        yield Emit(owner, "FailedCreate", f"Error creating: {refusal.message}", refusal=refusal)


def namespace_terminates(refusal: Refusal) -> bool:
    """Whether the namespace is terminating, so that every creation in it fails. No controller reports that."""
    return refusal.terminating is not None and refusal.terminating.kind == "Namespace"


def _manage(owner: Body, world: World) -> Generator[Act, Refusal | None, str]:
    """Create missing pods, delete surplus pods. Returns the refusal that stopped it, or an empty string."""
    active = [pod for pod in world.owned(owner, "Pod") if is_active(pod)]
    pod = pod_from(dig(owner, "spec", "template") or {}, owner)
    for _ in range(_replicas(owner) - len(active)):
        refusal = yield Create(pod, owner=owner)
        if refusal:
            yield from refused_creation(owner, refusal)
            return "" if namespace_terminates(refusal) else refusal.message
    for extra in sorted(active, key=worst_first)[: max(0, len(active) - _replicas(owner))]:
        yield Delete(extra, why="more replicas than desired")
    return ""


def _status(owner: Body, active: list[Body], refusal: str) -> Body:
    template = dig(owner, "spec", "template") or {}
    labelled = {"matchLabels": labels_of(template)}
    ready_pods = sum(is_ready(pod) for pod in active)
    kept = dig(owner, "status", "conditions") or []
    if refusal and conditions.find(owner, "ReplicaFailure") is None:
        kept = with_condition(kept, condition(owner, "ReplicaFailure", "True", "FailedCreate", refusal))
    elif not refusal:
        kept = without_condition(kept, "ReplicaFailure")
    counted = {
        "fullyLabeledReplicas": sum(fits(labels_of(pod), labelled) for pod in active),
        "readyReplicas": ready_pods,
        "availableReplicas": ready_pods,
        "observedGeneration": generation_of(owner),
        "conditions": kept,
    }
    return {"replicas": len(active), **without_zeros(counted)}


def _replicas(owner: Body) -> int:
    replicas = dig(owner, "spec", "replicas")
    return 1 if replicas is None else int(replicas)


def _selector(owner: Body) -> Body:
    """A ReplicationController's selector is a map of labels."""
    found = dig(owner, "spec", "selector") or {}
    return {"matchLabels": found} if owner.get("kind") == "ReplicationController" else found


KINDS = (
    Kind(
        "ReplicaSet",
        "apps",
        actor="replicaset-controller",
        needs=template_needs("spec", "template"),
        behave=behave,
        quick=always,
        immutable=immutable,
        default=default,
        ready=ready,
    ),
    Kind(
        "ReplicationController",
        actor="replication-controller",
        needs=template_needs("spec", "template"),
        behave=behave,
        quick=always,
        default=default,
        ready=ready,
    ),
)
