"""The status that a kubelet writes for a pod. The caller decides what happened to the containers.

Conditions from pkg/kubelet/status/generate.go of Kubernetes 1.34.
"""

from __future__ import annotations

import zlib

from seatrial.kinds.core.conditions import condition
from seatrial.kinds.core.objectmeta import created_at, namespace_of
from seatrial.model.resource import Body, dig, listed, name_of


def waiting(container: Body, reason: str, message: str = "", restarts: int = 0) -> Body:
    state = {"reason": reason, "message": message} if message else {"reason": reason}
    return _container(container, {"waiting": state}, ready=False, started=False, restarts=restarts)


def running(container: Body, since: str, *, ready: bool = True) -> Body:
    return _container(container, {"running": {"startedAt": since}}, ready=ready, started=True)


def ended(container: Body, exit_code: int, since: str, *, init: bool = False, restarts: int = 0) -> Body:
    state = {
        "exitCode": exit_code,
        "reason": "Error" if exit_code else "Completed",
        "startedAt": since,
        "finishedAt": since,
    }
    ready = init and exit_code == 0
    return _container(container, {"terminated": state}, ready=ready, started=False, restarts=restarts)


def status(pod: Body, phase: str, inits: list[Body], mains: list[Body], *, networked: bool = True) -> Body:
    """The whole status of a pod on a node. `networked`: its sandbox exists, so it has an IP."""
    found: Body = {
        "phase": phase,
        "conditions": _conditions(pod, phase, inits, mains, networked=networked),
        "hostIP": host_ip(pod),
        "hostIPs": [{"ip": host_ip(pod)}],
        "startTime": created_at(pod),
        "qosClass": dig(pod, "status", "qosClass") or "BestEffort",
    }
    if networked:
        found["podIP"] = pod_ip(pod)
        found["podIPs"] = [{"ip": pod_ip(pod)}]
    if inits:
        found["initContainerStatuses"] = inits
    found["containerStatuses"] = mains
    return found


def pod_ip(pod: Body) -> str:
    """An IP that depends only on the pod's name."""
    if dig(pod, "spec", "hostNetwork"):
        return host_ip(pod)
    number = zlib.crc32(f"{namespace_of(pod)}/{name_of(pod)}".encode())
    return f"10.244.{number >> 8 & 255}.{number & 255}"


def host_ip(pod: Body) -> str:
    return f"192.168.0.{10 + zlib.crc32(str(dig(pod, 'spec', 'nodeName')).encode()) % 240}"


def _conditions(pod: Body, phase: str, inits: list[Body], mains: list[Body], *, networked: bool) -> list[Body]:
    ready = _readiness(pod, phase, mains)
    up = networked and phase not in ("Succeeded", "Failed")
    return [
        condition(pod, "PodReadyToStartContainers", "True" if up else "False"),
        _initialized(pod, phase, inits),
        condition(pod, "Ready", *ready),
        condition(pod, "ContainersReady", *ready),
        condition(pod, "PodScheduled", "True"),
    ]


def _initialized(pod: Body, phase: str, inits: list[Body]) -> Body:
    if phase == "Succeeded":
        return condition(pod, "Initialized", "True", "PodCompleted")
    incomplete = [container["name"] for container in inits if not (container["ready"] or container["started"])]
    if incomplete:
        message = f"containers with incomplete status: [{' '.join(incomplete)}]"
        return condition(pod, "Initialized", "False", "ContainersNotInitialized", message)
    return condition(pod, "Initialized", "True")


def _readiness(pod: Body, phase: str, mains: list[Body]) -> tuple[str, str, str]:
    if phase == "Succeeded":
        return "False", "PodCompleted", ""
    if phase == "Failed":
        return "False", "PodFailed", ""
    unready = [container["name"] for container in mains if not container["ready"]]
    if unready or not listed(pod, "spec", "containers"):
        return "False", "ContainersNotReady", f"containers with unready status: [{' '.join(unready)}]"
    return "True", "", ""


def _container(container: Body, state: Body, *, ready: bool, started: bool, restarts: int = 0) -> Body:
    return {
        "name": str(container.get("name") or ""),
        "image": str(container.get("image") or ""),
        "imageID": "",
        "ready": ready,
        "started": started,
        "restartCount": restarts,
        "state": state,
        "lastState": {},
    }
