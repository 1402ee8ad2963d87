"""Pods as controllers count and create them. Knows neither the kubelet nor the owner of a pod."""

from __future__ import annotations

from seatrial.kinds.core import conditions
from seatrial.kinds.core.objectmeta import is_terminating, namespace_of
from seatrial.model.resource import Body, dig, name_of

FINISHED = ("Succeeded", "Failed")


def phase_of(pod: Body) -> str:
    return str(dig(pod, "status", "phase") or "Pending")


def is_finished(pod: Body) -> bool:
    return phase_of(pod) in FINISHED


def is_active(pod: Body) -> bool:
    """Neither finished nor terminating: what a ReplicaSet or a Job counts."""
    return not is_finished(pod) and not is_terminating(pod)


def is_ready(pod: Body) -> bool:
    return conditions.is_true(pod, "Ready")


def is_running_and_ready(pod: Body) -> bool:
    return phase_of(pod) == "Running" and is_ready(pod)


def worst_first(pod: Body) -> tuple[bool, bool, bool, str]:
    """The order in which a controller deletes pods: unscheduled, pending and unready pods first."""
    return bool(dig(pod, "spec", "nodeName")), phase_of(pod) == "Running", is_ready(pod), name_of(pod)


def pod_from(template: Body, owner: Body, *, name: str = "", labels: dict[str, str] | None = None) -> Body:
    """A pod as a controller creates it. Without a name the API server generates one from the owner's."""
    written = template.get("metadata") or {}
    meta: Body = {"namespace": namespace_of(owner)}
    if name:
        meta["name"] = name
    else:
        meta["generateName"] = f"{name_of(owner)}-"
    if written.get("labels") or labels:
        meta["labels"] = {**(written.get("labels") or {}), **(labels or {})}
    for field in ("annotations", "finalizers"):
        if written.get(field):
            meta[field] = written[field]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": template.get("spec") or {}}
