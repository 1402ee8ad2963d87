"""When Helm 3, and Helm 4 with `--wait=legacy`, consider an object ready: `pkg/kube/ready.go` of Helm 3.19.

Helm polls every two seconds. Every kind it does not know, including all custom resources, counts as ready.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from seatrial.helm.hooks import is_hook
from seatrial.model.resource import Body, dig, group_of, listed, metadata
from seatrial.readiness.kstatus import is_hook_done as ended


def is_ready_for_wait(body: Body) -> bool:
    """Whether `--wait` continues with the next object. Hooks have their own rules; Jobs are waited for on request."""
    if is_terminating(body):
        return False
    if is_hook(body) or body.get("kind") == "Job":
        return ended(body)
    known = _BY_KIND.get((group_of(str(body.get("apiVersion", ""))), str(body.get("kind"))))
    return known is None or known(body)


def is_hook_done(body: Body) -> bool:
    """Whether Helm continues after this hook. A hook with a delete policy must be gone first."""
    return not is_terminating(body) and ended(body)


def is_terminating(body: Body) -> bool:
    return bool(metadata(body).get("deletionTimestamp"))


def _pod(body: Body) -> bool:
    return _condition(body, "Ready") == "True"


def _deployment(body: Body) -> bool:
    if dig(body, "spec", "paused"):
        return True
    replicas = _number(body, "spec", "replicas", default=1)
    # Helm counts the pods of the newest ReplicaSet. Pods of older ones, which serve until then, are ready too.
    older = _number(body, "status", "replicas") - _number(body, "status", "updatedReplicas")
    ready = _number(body, "status", "readyReplicas") - older
    return _is_observed(body) and ready >= replicas - _unavailable_max(body, replicas)


def _unavailable_max(body: Body, replicas: int) -> int:
    if dig(body, "spec", "strategy", "type") == "Recreate":
        return 0
    surge = _portion(dig(body, "spec", "strategy", "rollingUpdate", "maxSurge") or "25%", replicas, up=True)
    least = _portion(dig(body, "spec", "strategy", "rollingUpdate", "maxUnavailable") or "25%", replicas, up=False)
    return min(least if surge or least else 1, replicas)


def _daemon_set(body: Body) -> bool:
    if dig(body, "spec", "updateStrategy", "type") not in (None, "RollingUpdate"):
        return _is_observed(body)
    wanted = _number(body, "status", "desiredNumberScheduled")
    rolling = dig(body, "spec", "updateStrategy", "rollingUpdate") or {}
    least = wanted - _portion(rolling.get("maxUnavailable", 1), wanted, up=True)
    updated = _number(body, "status", "updatedNumberScheduled")
    return _is_observed(body) and updated == wanted and _number(body, "status", "numberReady") >= least


def _stateful_set(body: Body) -> bool:
    if dig(body, "spec", "updateStrategy", "type") not in (None, "RollingUpdate"):
        return _is_observed(body)
    replicas = _number(body, "spec", "replicas", default=1)
    partition = _number(body, "spec", "updateStrategy", "rollingUpdate", "partition")
    same = dig(body, "status", "currentRevision") == dig(body, "status", "updateRevision")
    return (
        _is_observed(body)
        and _number(body, "status", "updatedReplicas") >= replicas - partition
        and _number(body, "status", "readyReplicas") == replicas
        and (partition > 0 or same)
    )


def _service(body: Body) -> bool:
    if dig(body, "spec", "type") == "ExternalName":
        return True
    if dig(body, "spec", "type") != "LoadBalancer" or listed(body, "spec", "externalIPs"):
        return bool(dig(body, "spec", "clusterIP"))
    return bool(listed(body, "status", "loadBalancer", "ingress"))


def _claim(body: Body) -> bool:
    return bool(dig(body, "status", "phase") == "Bound")


def _crd(body: Body) -> bool:
    return _condition(body, "Established") == "True" or _condition(body, "NamesAccepted") == "False"


def _is_observed(body: Body) -> bool:
    return bool(dig(body, "status", "observedGeneration") == metadata(body).get("generation"))


_BY_KIND: dict[tuple[str, str], Callable[[Body], bool]] = {
    ("", "Pod"): _pod,
    ("", "Service"): _service,
    ("", "PersistentVolumeClaim"): _claim,
    ("", "ReplicationController"): _is_observed,
    ("apps", "Deployment"): _deployment,
    ("apps", "DaemonSet"): _daemon_set,
    ("apps", "ReplicaSet"): _is_observed,
    ("apps", "StatefulSet"): _stateful_set,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): _crd,
}
CHECKED = tuple(kind for _, kind in _BY_KIND)
"""Kinds that Helm 3 looks at. It continues at once after all others."""


def _condition(body: Body, type_: str) -> str:
    found = (c.get("status") for c in listed(body, "status", "conditions") if c.get("type") == type_)
    return str(next(found, ""))


def _number(body: Body, *path: str, default: int = 0) -> int:
    found = dig(body, *path)
    return found if isinstance(found, int) else default


def _portion(value: Any, whole: int, *, up: bool) -> int:
    """A number, or a percentage of `whole`."""
    if isinstance(value, str) and value.endswith("%"):
        percent = int(value[:-1]) * whole
        return -(-percent // 100) if up else percent // 100
    return int(value)
