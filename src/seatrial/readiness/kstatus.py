"""When Helm 4 and Flux consider an object ready: kstatus of fluxcd/cli-utils 1.2 (`pkg/kstatus/status/core.go`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from seatrial.helm.hooks import is_hook
from seatrial.model.resource import Body, dig, listed, metadata

Status = Literal["InProgress", "Failed", "Current", "Terminating"]


def status(body: Body) -> Status:
    """The kstatus status of an existing object."""
    if metadata(body).get("deletionTimestamp"):
        return "Terminating"
    observed = dig(body, "status", "observedGeneration")
    if observed is not None and observed != metadata(body).get("generation"):
        return "InProgress"
    if _condition(body, "Reconciling") == "True":
        return "InProgress"
    if _condition(body, "Stalled") == "True":
        return "Failed"
    group, _, _ = str(body.get("apiVersion", "")).rpartition("/")
    known = _BY_KIND.get((group, str(body.get("kind"))))
    return known(body) if known else _by_ready_condition(body)


def is_ready_for_wait(body: Body) -> bool:
    """Whether `--wait` stops waiting for this object, ready or failed. Jobs and Pods that are hooks must end."""
    must_end = body.get("kind") in ("Job", "Pod") and is_hook(body)
    if must_end and not metadata(body).get("deletionTimestamp"):
        return is_hook_done(body)
    return _is_skipped(body) or status(body) in ("Current", "Failed")


def is_content_with(body: Body) -> bool:
    """Whether `--wait` ends well for this regular resource."""
    return _is_skipped(body) or status(body) == "Current"


def _is_skipped(body: Body) -> bool:
    """Helm does not wait for a Deployment that is paused (`wait` in pkg/kube/statuswait.go)."""
    return body.get("kind") == "Deployment" and dig(body, "spec", "paused") is True


def is_ready_with_jobs(body: Body) -> bool:
    """Like `is_ready_for_wait`, with `--wait-for-jobs`: a Job must end. For kstatus a started Job is Current."""
    if body.get("kind") == "Job" and not metadata(body).get("deletionTimestamp"):
        return is_hook_done(body)
    return is_ready_for_wait(body)


def is_hook_done(body: Body) -> bool:
    """Whether Helm continues after this hook: Jobs and Pods must end, other kinds must exist."""
    match body.get("apiVersion"), body.get("kind"):
        case "batch/v1", "Job":
            return "True" in (_condition(body, "Complete"), _condition(body, "Failed"))
        case "v1", "Pod":
            return dig(body, "status", "phase") in ("Succeeded", "Failed")
    return True


def is_ready_without_wait(body: Body) -> bool:
    """Like `is_hook_done`, without `--wait`: since 4.3 Helm waits for the CRDs of crds/ nevertheless."""
    if body.get("kind") == "CustomResourceDefinition" and not is_hook(body):
        return is_ready_for_wait(body)
    return is_hook_done(body)


def _condition(body: Body, type_: str) -> str:
    found = (c.get("status") for c in listed(body, "status", "conditions") if c.get("type") == type_)
    return str(next(found, ""))


def _by_ready_condition(body: Body) -> Status:
    """A kind that kstatus does not know: its `Ready` condition counts if there is one."""
    return "InProgress" if _condition(body, "Ready") in ("False", "Unknown") else "Current"


def _number(body: Body, *path: str, default: int = 0) -> int:
    found = dig(body, *path)
    return found if isinstance(found, int) else default


def _deployment(body: Body) -> Status:
    progressing: Body = next((c for c in listed(body, "status", "conditions") if c.get("type") == "Progressing"), {})
    if progressing.get("reason") == "ProgressDeadlineExceeded":
        return "Failed"
    wanted = _number(body, "spec", "replicas", default=1)
    counts = [
        _number(body, "status", key) for key in ("replicas", "updatedReplicas", "availableReplicas", "readyReplicas")
    ]
    if any(count < wanted for count in counts) or counts[0] > counts[1]:
        return "InProgress"
    deadline = _number(body, "spec", "progressDeadlineSeconds", default=600)
    rolled = progressing.get("reason") == "NewReplicaSetAvailable" and progressing.get("status") == "True"
    if deadline != 0x7FFFFFFF and not rolled:
        return "InProgress"
    return "Current" if _condition(body, "Available") == "True" else "InProgress"


def _stateful_set(body: Body) -> Status:
    if dig(body, "spec", "updateStrategy", "type") == "OnDelete":
        return "Current"
    wanted = _number(body, "spec", "replicas", default=1)
    if any(_number(body, "status", key) < wanted for key in ("replicas", "readyReplicas")):
        return "InProgress"
    partition = _number(body, "spec", "updateStrategy", "rollingUpdate", "partition")
    if partition:
        return "Current" if _number(body, "status", "updatedReplicas") >= wanted - partition else "InProgress"
    if _number(body, "status", "currentReplicas") < wanted:
        return "InProgress"
    same = dig(body, "status", "currentRevision") == dig(body, "status", "updateRevision")
    return "Current" if same else "InProgress"


def _daemon_set(body: Body) -> Status:
    if dig(body, "status", "observedGeneration") is None:
        return "InProgress"
    wanted = _number(body, "status", "desiredNumberScheduled")
    keys = ("currentNumberScheduled", "updatedNumberScheduled", "numberAvailable", "numberReady")
    return "InProgress" if any(_number(body, "status", key) < wanted for key in keys) else "Current"


def _replica_set(body: Body) -> Status:
    wanted = _number(body, "spec", "replicas", default=1)
    keys = ("fullyLabeledReplicas", "availableReplicas", "readyReplicas")
    short = any(_number(body, "status", key) < wanted for key in keys)
    return "InProgress" if short or _number(body, "status", "replicas") > wanted else "Current"


def _pod(body: Body) -> Status:
    match dig(body, "status", "phase"):
        case "Succeeded" | "Failed":
            return "Current"
        case "Running" if _condition(body, "Ready") == "True":
            return "Current"
    return "InProgress"


def _job(body: Body) -> Status:
    if _condition(body, "Failed") == "True":
        return "Failed"
    started = dig(body, "status", "startTime") is not None
    return "Current" if started or _condition(body, "Complete") == "True" else "InProgress"


def _claim(body: Body) -> Status:
    return "Current" if dig(body, "status", "phase") == "Bound" else "InProgress"


def _service(body: Body) -> Status:
    needs_ip = dig(body, "spec", "type") == "LoadBalancer"
    return "InProgress" if needs_ip and not dig(body, "spec", "clusterIP") else "Current"


def _crd(body: Body) -> Status:
    if _condition(body, "NamesAccepted") == "False":
        return "Failed"
    return "Current" if _condition(body, "Established") == "True" else "InProgress"


def _current(body: Body) -> Status:
    return "Current"


_BY_KIND: dict[tuple[str, str], Callable[[Body], Status]] = {
    ("apps", "Deployment"): _deployment,
    ("apps", "StatefulSet"): _stateful_set,
    ("apps", "DaemonSet"): _daemon_set,
    ("apps", "ReplicaSet"): _replica_set,
    ("", "Pod"): _pod,
    ("batch", "Job"): _job,
    ("", "PersistentVolumeClaim"): _claim,
    ("", "Service"): _service,
    ("policy", "PodDisruptionBudget"): _current,
    ("batch", "CronJob"): _current,
    ("", "ConfigMap"): _current,
    ("", "Secret"): _current,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): _crd,
}
CHECKED = tuple(kind for _, kind in _BY_KIND)
"""Kinds with a check of their own. Of others the condition `Ready` counts, if there is one."""
