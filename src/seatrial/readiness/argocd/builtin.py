"""The health checks compiled into Argo CD: `gitops-engine/pkg/health/health_*.go` of Argo CD 3.5."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from seatrial.model.resource import Body, annotations_of, dig, listed, name_of
from seatrial.readiness.argocd.verdict import (
    DEGRADED,
    HEALTHY,
    PROGRESSING,
    SUSPENDED,
    UNKNOWN,
    Health,
)

Check = Callable[[Body], Health]

ROLLOUT = "Waiting for rollout to finish: "
HPA_DEGRADED = {
    ("AbleToScale", "FailedGetScale"),
    ("AbleToScale", "FailedUpdateScale"),
    ("ScalingActive", "FailedGetResourceMetric"),
    ("ScalingActive", "InvalidSelector"),
}
HPA_DEGRADED_SINCE_3_5 = {
    ("ScalingActive", "FailedGetObjectMetric"),
    ("ScalingActive", "FailedGetPodsMetric"),
    ("ScalingActive", "FailedGetExternalMetric"),
    ("ScalingActive", "FailedComputeMetricsReplicas"),
}
HPA_CONDITIONS = "autoscaling.alpha.kubernetes.io/conditions"


def check_for(group: str, kind: str, version: tuple[int, int]) -> Check | None:
    if kind == "HorizontalPodAutoscaler" and version < (3, 5):
        return _BEFORE_3_5.get((group, kind))
    return _BY_KIND.get((group, kind))


def _count(body: Body, *path: str) -> int:
    found = dig(body, *path)
    return found if isinstance(found, int) else 0


def _is_observed(body: Body) -> bool:
    return _count(body, "metadata", "generation") <= _count(body, "status", "observedGeneration")


def _deployment(body: Body) -> Health:
    if dig(body, "spec", "paused"):
        return Health(SUSPENDED, "Deployment is paused")
    if not _is_observed(body):
        return Health(PROGRESSING, f"{ROLLOUT}observed deployment generation less than desired generation")
    conditions = listed(body, "status", "conditions")
    progressing: Body = next((c for c in conditions if c.get("type") == "Progressing"), {})
    if progressing.get("reason") == "ProgressDeadlineExceeded":
        return Health(DEGRADED, f'Deployment "{name_of(body)}" exceeded its progress deadline')
    wanted = dig(body, "spec", "replicas")
    updated, total = _count(body, "status", "updatedReplicas"), _count(body, "status", "replicas")
    available = _count(body, "status", "availableReplicas")
    if isinstance(wanted, int) and updated < wanted:
        return Health(PROGRESSING, f"{ROLLOUT}{updated} out of {wanted} new replicas have been updated...")
    if total > updated:
        return Health(PROGRESSING, f"{ROLLOUT}{total - updated} old replicas are pending termination...")
    if available < updated:
        return Health(PROGRESSING, f"{ROLLOUT}{available} of {updated} updated replicas are available...")
    return Health(HEALTHY)


def _stateful_set(body: Body) -> Health:
    if not _count(body, "status", "observedGeneration") or not _is_observed(body):
        return Health(PROGRESSING, "Waiting for statefulset spec update to be observed...")
    wanted, ready = dig(body, "spec", "replicas"), _count(body, "status", "readyReplicas")
    if isinstance(wanted, int) and ready < wanted:
        return Health(PROGRESSING, f"Waiting for {wanted - ready} pods to be ready...")
    updated = _count(body, "status", "updatedReplicas")
    strategy = dig(body, "spec", "updateStrategy") or {}
    if strategy.get("type") == "RollingUpdate" and strategy.get("rollingUpdate") is not None:
        partition = strategy["rollingUpdate"].get("partition")
        if isinstance(wanted, int) and isinstance(partition, int) and updated < wanted - partition:
            done = f"{updated} out of {wanted - partition} new pods have been updated..."
            return Health(PROGRESSING, f"Waiting for partitioned roll out to finish: {done}")
        return Health(HEALTHY, f"partitioned roll out complete: {updated} new pods have been updated...")
    if strategy.get("type") == "OnDelete":
        return Health(HEALTHY, f"statefulset has {ready} ready pods")
    update, current = dig(body, "status", "updateRevision"), dig(body, "status", "currentRevision")
    if update != current:
        left = f"{updated} pods at revision {update}..."
        return Health(PROGRESSING, f"waiting for statefulset rolling update to complete {left}")
    running = _count(body, "status", "currentReplicas")
    return Health(HEALTHY, f"statefulset rolling update complete {running} pods at revision {current}...")


def _daemon_set(body: Body) -> Health:
    if not _is_observed(body):
        return Health(PROGRESSING, f"{ROLLOUT}observed daemon set generation less than desired generation")
    wanted, updated = (_count(body, "status", f"{word}NumberScheduled") for word in ("desired", "updated"))
    if dig(body, "spec", "updateStrategy", "type") == "OnDelete":
        return Health(HEALTHY, f"daemon set {updated} out of {wanted} new pods have been updated")
    waiting = f'Waiting for daemon set "{name_of(body)}" rollout to finish: '
    if updated < wanted:
        return Health(PROGRESSING, f"{waiting}{updated} out of {wanted} new pods have been updated...")
    available = _count(body, "status", "numberAvailable")
    if available < wanted:
        return Health(PROGRESSING, f"{waiting}{available} of {wanted} updated pods are available...")
    return Health(HEALTHY)


def _replica_set(body: Body) -> Health:
    if not _is_observed(body):
        return Health(PROGRESSING, f"{ROLLOUT}observed replica set generation less than desired generation")
    failure = _condition(body, "ReplicaFailure")
    if failure.get("status") == "True":
        return Health(DEGRADED, str(failure.get("message", "")))
    wanted, available = dig(body, "spec", "replicas"), _count(body, "status", "availableReplicas")
    if isinstance(wanted, int) and available < wanted:
        return Health(PROGRESSING, f"{ROLLOUT}{available} out of {wanted} new replicas are available...")
    return Health(HEALTHY)


def _service(body: Body) -> Health:
    if dig(body, "spec", "type") != "LoadBalancer":
        return Health(HEALTHY)
    return _ingress(body)


def _ingress(body: Body) -> Health:
    return Health(HEALTHY if listed(body, "status", "loadBalancer", "ingress") else PROGRESSING)


def _claim(body: Body) -> Health:
    by_phase = {"Lost": DEGRADED, "Pending": PROGRESSING, "Bound": HEALTHY}
    return Health(by_phase.get(str(dig(body, "status", "phase")), UNKNOWN))


def _pod(body: Body) -> Health:
    always = dig(body, "spec", "restartPolicy") in (None, "Always")
    statuses = listed(body, "status", "containerStatuses")
    message = str(dig(body, "status", "message") or "")
    waiting: list[Body] = [w for status in statuses if (w := dig(status, "state", "waiting"))]
    failing = [w for w in waiting if _is_failing(str(w.get("reason", "")))]
    if always and failing:
        return Health(DEGRADED, ", ".join(str(w.get("message", "")) for w in failing))
    match dig(body, "status", "phase"):
        case "Pending":
            return Health(PROGRESSING, message)
        case "Succeeded":
            return Health(HEALTHY, message)
        case "Failed":
            return Health(DEGRADED, message or _fail_message(body))
        case "Running" if not always:
            return Health(PROGRESSING, message)
        case "Running" if _condition(body, "Ready").get("status") == "True":
            return Health(HEALTHY, message)
        case "Running":
            ended = any(dig(status, "lastState", "terminated") for status in statuses)
            return Health(DEGRADED if ended else PROGRESSING, message)
    return Health(UNKNOWN, message)


def _is_failing(reason: str) -> bool:
    return reason.startswith("Err") or reason.endswith(("Error", "BackOff"))


def _fail_message(pod: Body) -> str:
    for status in (*listed(pod, "status", "initContainerStatuses"), *listed(pod, "status", "containerStatuses")):
        ended = dig(status, "state", "terminated") or {}
        if ended.get("message"):
            return str(ended["message"])
        if ended.get("reason") == "OOMKilled":
            return "OOMKilled"
        if ended.get("exitCode"):
            return f'container "{status.get("name")}" failed with exit code {ended["exitCode"]}'
    return ""


def _job(body: Body) -> Health:
    """A condition counts whatever its status, except `Suspended`."""
    conditions = {str(c.get("type")): c for c in listed(body, "status", "conditions")}
    if "Failed" in conditions:
        return Health(DEGRADED, str(conditions["Failed"].get("message", "")))
    if conditions.get("Suspended", {}).get("status") == "True":
        return Health(SUSPENDED)
    done = [conditions[word] for word in ("Complete", "Suspended") if word in conditions]
    return Health(HEALTHY, str(done[-1].get("message", ""))) if done else Health(PROGRESSING)


def _autoscaler(body: Body) -> Health:
    return _scaled(body, HPA_DEGRADED | HPA_DEGRADED_SINCE_3_5)


def _autoscaler_before_3_5(body: Body) -> Health:
    return _scaled(body, HPA_DEGRADED)


def _scaled(body: Body, degraded: set[tuple[str, str]]) -> Health:
    conditions = listed(body, "status", "conditions")
    if body.get("apiVersion") == "autoscaling/v1":
        conditions = msgspec.json.decode(annotations_of(body).get(HPA_CONDITIONS) or "[]")
    for condition in conditions:
        if (condition.get("type"), condition.get("reason")) in degraded:
            return Health(DEGRADED, str(condition.get("message", "")))
    for condition in conditions:
        if condition.get("type") in ("AbleToScale", "ScalingLimited") and condition.get("status") == "True":
            return Health(HEALTHY, str(condition.get("message", "")))
    return Health(PROGRESSING, "Waiting to Autoscale")


def _api_service(body: Body) -> Health:
    available = _condition(body, "Available")
    if not available:
        return Health(PROGRESSING, "Waiting to be processed")
    message = f"{available.get('reason', '')}: {available.get('message', '')}"
    return Health(HEALTHY if available.get("status") == "True" else PROGRESSING, message)


def _workflow(body: Body) -> Health:
    message = str(dig(body, "status", "message") or "")
    by_phase = {"": PROGRESSING, "Pending": PROGRESSING, "Running": PROGRESSING, "Succeeded": HEALTHY}
    by_phase |= {"Failed": DEGRADED, "Error": DEGRADED}
    return Health(by_phase.get(str(dig(body, "status", "phase") or ""), UNKNOWN), message)


def _condition(body: Body, type_: str) -> dict[str, Any]:
    return next((c for c in listed(body, "status", "conditions") if c.get("type") == type_), {})


def _only(api_versions: tuple[str, ...], check: Check) -> Check:
    """A check for these versions of its kind; an error for all others."""

    def checked(body: Body) -> Health:
        version, kind = str(body.get("apiVersion", "")), str(body.get("kind", ""))
        if version in api_versions:
            return check(body)
        short = "HPA" if kind == "HorizontalPodAutoscaler" else kind
        return Health(UNKNOWN, f"unsupported {short} GVK: {version}, Kind={kind}", broken=True)

    return checked


_BY_KIND: dict[tuple[str, str], Check] = {
    ("apps", "Deployment"): _only(("apps/v1",), _deployment),
    ("apps", "StatefulSet"): _only(("apps/v1",), _stateful_set),
    ("apps", "ReplicaSet"): _only(("apps/v1",), _replica_set),
    ("apps", "DaemonSet"): _only(("apps/v1",), _daemon_set),
    ("extensions", "Ingress"): _ingress,
    ("networking.k8s.io", "Ingress"): _ingress,
    ("argoproj.io", "Workflow"): _workflow,
    ("apiregistration.k8s.io", "APIService"): _only(
        ("apiregistration.k8s.io/v1", "apiregistration.k8s.io/v1beta1"), _api_service
    ),
    ("", "Service"): _only(("v1",), _service),
    ("", "PersistentVolumeClaim"): _only(("v1",), _claim),
    ("", "Pod"): _only(("v1",), _pod),
    ("batch", "Job"): _only(("batch/v1",), _job),
    ("autoscaling", "HorizontalPodAutoscaler"): _only(("autoscaling/v1", "autoscaling/v2"), _autoscaler),
}
KINDS = tuple(_BY_KIND)
CHECKED = tuple(dict.fromkeys(kind for _, kind in _BY_KIND))
"""Kinds with a compiled-in check."""
_BEFORE_3_5: dict[tuple[str, str], Check] = {
    ("autoscaling", "HorizontalPodAutoscaler"): _only(("autoscaling/v1", "autoscaling/v2"), _autoscaler_before_3_5),
}
