"""When Pulumi considers an object ready: the awaiters of pulumi-kubernetes 4.32 (`provider/pkg/await`).

Custom resources, CRDs, webhook configurations, Namespaces, ConfigMaps and all kinds not listed here are never waited
for, unless the object has `pulumi.com/waitFor`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from seatrial.model import lazy_re
from seatrial.model.resource import (
    Body,
    Ref,
    annotations_of,
    dig,
    group_of,
    listed,
    metadata,
    name_of,
)
from seatrial.readiness.kstatus import status

SKIP_AWAIT = "pulumi.com/skipAwait"
WAIT_FOR = "pulumi.com/waitFor"
TIMEOUT = "pulumi.com/timeoutSeconds"
PROPAGATION = "pulumi.com/deletionPropagationPolicy"
TIMEOUT_SECONDS = 600
INNER_SECONDS = {"PersistentVolumeClaim": 300, "PersistentVolume": 300, "ResourceQuota": 60, "Secret": 5}
"""Awaiters that time out before the default of ten minutes."""
UNAWAITED_WHEN_DELETED = ("Namespace", "Pod", "ReplicationController", "DaemonSet", "Deployment", "StatefulSet", "Job")
"""Kinds whose deletion is not awaited with `skipAwait`. For all other kinds `skipAwait` is ignored."""

_STEP = lazy_re.compile(r"\.?([\w-]+)|\[(\*|\d+)\]|\['([^']+)'\]")


def skips(body: Body) -> bool:
    return annotations_of(body).get(SKIP_AWAIT) == "true"


def is_awaited(body: Body) -> bool:
    """Whether Pulumi waits after it created this object."""
    return not skips(body) and (WAIT_FOR in annotations_of(body) or _key(body) in _BY_KIND)


def timeout_seconds(body: Body, *, deleted: bool = False) -> int:
    timeout = str(annotations_of(body).get(TIMEOUT) or "")
    inner = {} if deleted else INNER_SECONDS
    return int(timeout) if timeout.isdigit() else inner.get(str(body.get("kind")), TIMEOUT_SECONDS)


def related_object(body: Body) -> Ref | None:
    """The other object that an awaiter reads: the Endpoints of a Service, the StorageClass of a PVC."""
    if WAIT_FOR in annotations_of(body):
        return None
    match _key(body):
        case "", "Service":
            return Ref("Endpoints", str(metadata(body).get("namespace") or ""), name_of(body))
        case "", "PersistentVolumeClaim" if dig(body, "spec", "storageClassName"):
            return Ref("StorageClass", "", str(dig(body, "spec", "storageClassName")), "storage.k8s.io")
    return None


def is_ready(body: Body, other: Body | None = None) -> bool:
    """Whether Pulumi continues after this object in its current state. `other` is its `related_object`."""
    if skips(body):
        return True
    if (wait_for := annotations_of(body).get(WAIT_FOR)) is not None:
        return all(_holds(one, body) for one in conditions(str(wait_for)))
    known = _BY_KIND.get(_key(body))
    return known is None or known(body, other or {})


def failure(body: Body) -> str:
    """Why Pulumi fails at once. Only Jobs can fail this way."""
    for condition in listed(body, "status", "conditions") if _key(body) == ("batch", "Job") else ():
        fails = condition.get("type") == "Failed" and condition.get("status") == "True"
        if fails and condition.get("reason") in ("BackoffLimitExceeded", "DeadlineExceeded"):
            return f"[{condition['reason']}] {condition.get('message', '')}"
    return ""


def conditions(wait_for: str) -> list[str]:
    """The conditions in `pulumi.com/waitFor`: one condition or a JSON list."""
    if not wait_for.lstrip().startswith("["):
        return [wait_for]
    found = json.loads(wait_for)
    return [str(one) for one in found] if isinstance(found, list) else [wait_for]


def _holds(expression: str, body: Body) -> bool:
    kind, _, rest = expression.partition("=")
    if kind == "condition":
        type_, _, wanted = rest.partition("=")
        return _condition(body, type_).lower() == (wanted or "True").lower()
    path, _, wanted = rest.partition("}")
    found = list(_at(body, path.lstrip("{")))
    wanted = wanted.removeprefix("=")
    return bool(found) and all(str(one) == wanted for one in found) if wanted else bool(found) and all(found)


def _at(body: Any, path: str) -> Iterator[Any]:
    """The values at a JSONPath of fields, indices and `[*]`."""
    found = [body]
    for field, index, quoted in _STEP.findall(path):
        found = [inner for one in found for inner in _step(one, field or quoted, index)]
    yield from found


def _step(one: Any, field: str, index: str) -> Iterator[Any]:
    if index == "*" and isinstance(one, list):
        yield from one
    elif index and index != "*" and isinstance(one, list) and int(index) < len(one):
        yield one[int(index)]
    elif field and isinstance(one, dict) and field in one:
        yield one[field]


def _key(body: Body) -> tuple[str, str]:
    return group_of(str(body.get("apiVersion", ""))), str(body.get("kind"))


def _condition(body: Body, type_: str, field: str = "status") -> str:
    found = (c.get(field) for c in listed(body, "status", "conditions") if c.get("type") == type_)
    return str(next(found, ""))


def _number(body: Body, *path: str, default: int = 0) -> int:
    found = dig(body, *path)
    return found if isinstance(found, int) else default


def _is_observed(body: Body) -> bool:
    return _number(body, "status", "observedGeneration") >= _number(body, "metadata", "generation", default=1)


def _deployment(body: Body, other: Body) -> bool:
    """The ReplicaSet of the newest revision counts; its pods are the updated ones."""
    wanted = _number(body, "spec", "replicas", default=1)
    first = annotations_of(body).get("deployment.kubernetes.io/revision") == "1"
    rolled = first or _condition(body, "Progressing", "reason") == "NewReplicaSetAvailable"
    ready = min(_number(body, "status", "updatedReplicas"), _number(body, "status", "readyReplicas"))
    return _is_observed(body) and _condition(body, "Available") == "True" and rolled and ready >= wanted


def _stateful_set(body: Body, other: Body) -> bool:
    """With a partition this awaiter waits forever."""
    wanted = _number(body, "spec", "replicas", default=1)
    counts = [_number(body, "status", key) == wanted for key in ("replicas", "readyReplicas")]
    if dig(body, "spec", "updateStrategy", "type") == "OnDelete" and _number(body, "metadata", "generation") > 1:
        return _is_observed(body) and all(counts)
    revision = dig(body, "status", "currentRevision")
    same = bool(revision) and revision == dig(body, "status", "updateRevision")
    return _is_observed(body) and all(counts) and _number(body, "status", "currentReplicas") == wanted and same


def _daemon_set(body: Body, other: Body) -> bool:
    return status(body) == "Current"


def _pod(body: Body, other: Body) -> bool:
    begun = _condition(body, "PodScheduled") == "True" and _condition(body, "Initialized") == "True"
    return begun and (_condition(body, "Ready") == "True" or dig(body, "status", "phase") == "Succeeded")


def _job(body: Body, other: Body) -> bool:
    return dig(body, "status", "startTime") is not None and _condition(body, "Complete") == "True"


def _service(body: Body, endpoints: Body) -> bool:
    """A Service with no endpoints counts as ready; one with only unready endpoints does not."""
    if dig(body, "spec", "type") == "LoadBalancer" and not listed(body, "status", "loadBalancer", "ingress"):
        return False
    unselective = not dig(body, "spec", "selector") or dig(body, "spec", "clusterIP") == "None"
    if unselective or dig(body, "spec", "type") == "ExternalName":
        return True
    return bool(endpoints) and not any(subset.get("notReadyAddresses") for subset in listed(endpoints, "subsets"))


def _ingress(body: Body, other: Body) -> bool:
    return bool(listed(body, "status", "loadBalancer", "ingress"))


def _claim(body: Body, storage_class: Body) -> bool:
    """With WaitForFirstConsumer a PVC may be Pending. A PVC without a StorageClass must be Bound."""
    phase = dig(body, "status", "phase")
    waits = storage_class.get("volumeBindingMode") == "WaitForFirstConsumer"
    return phase == "Bound" or (waits and phase in (None, "Pending"))


def _volume(body: Body, other: Body) -> bool:
    return dig(body, "status", "phase") in ("Available", "Bound")


def _replication_controller(body: Body, other: Body) -> bool:
    return _number(body, "status", "availableReplicas") == _number(body, "spec", "replicas", default=1)


def _quota(body: Body, other: Body) -> bool:
    return bool(dig(body, "status", "hard") == dig(body, "spec", "hard"))


def _secret(body: Body, other: Body) -> bool:
    return body.get("type") != "kubernetes.io/service-account-token" or bool(body.get("data"))


_BY_KIND: dict[tuple[str, str], Callable[[Body, Body], bool]] = {
    ("apps", "Deployment"): _deployment,
    ("apps", "StatefulSet"): _stateful_set,
    ("apps", "DaemonSet"): _daemon_set,
    ("", "Pod"): _pod,
    ("batch", "Job"): _job,
    ("", "Service"): _service,
    ("networking.k8s.io", "Ingress"): _ingress,
    ("", "PersistentVolumeClaim"): _claim,
    ("", "PersistentVolume"): _volume,
    ("", "ReplicationController"): _replication_controller,
    ("", "ResourceQuota"): _quota,
    ("", "Secret"): _secret,
}
CHECKED = tuple(kind for _, kind in _BY_KIND)
"""Kinds that Pulumi waits for."""
