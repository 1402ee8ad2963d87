"""Columns of `kubectl get pods`. From `printPod` in `pkg/printers/internalversion/printers.go` (1.34)."""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.cluster.tables.age import since
from seatrial.cluster.tables.column import AGE, NAME, NONE, Column, Columns, at
from seatrial.model.resource import Body, dig, listed, metadata


def ready(body: Body, now: str) -> str:
    sidecars = _sidecars(body)
    running = [s for s in listed(body, "status", "initContainerStatuses") if s.get("name") in sidecars]
    if _initialized(body):
        running += [s for s in listed(body, "status", "containerStatuses") if dig(s, "state", "running") is not None]
    return f"{sum(1 for s in running if s.get('ready'))}/{len(listed(body, 'spec', 'containers')) + len(sidecars)}"


def status(body: Body, now: str) -> str:
    """The STATUS column: the first reason that the pod is not running, or its phase."""
    phase = dig(body, "status", "phase") or ""
    word = dig(body, "status", "reason") or phase
    if any(c.get("reason") == "SchedulingGated" for c in listed(body, "status", "conditions")):
        word = "SchedulingGated"
    word = _of_containers(body, word) if _initialized(body) else _initializing(body)
    if metadata(body).get("deletionTimestamp") and phase not in ("Succeeded", "Failed"):
        return "Unknown" if dig(body, "status", "reason") == "NodeLost" else "Terminating"
    return str(word)


def restarts(body: Body, now: str) -> str:
    statuses = listed(body, "status", "initContainerStatuses")
    if _initialized(body):
        sidecars = _sidecars(body)
        statuses = [s for s in statuses if s.get("name") in sidecars] + listed(body, "status", "containerStatuses")
    count = sum(s.get("restartCount") or 0 for s in statuses)
    last = max((dig(s, "lastState", "terminated", "finishedAt") or "" for s in statuses), default="")
    return f"{count} ({since(last, now)} ago)" if count and last else str(count)


def gates(body: Body, now: str) -> str:
    wanted = [gate.get("conditionType") for gate in listed(body, "spec", "readinessGates")]
    if not wanted:
        return "<none>"
    true = {c.get("type") for c in listed(body, "status", "conditions") if c.get("status") == "True"}
    return f"{sum(1 for name in wanted if name in true)}/{len(wanted)}"


def _sidecars(body: Body) -> set[str]:
    return {c["name"] for c in listed(body, "spec", "initContainers") if c.get("restartPolicy") == "Always"}


def _initialized(body: Body) -> bool:
    conditions = listed(body, "status", "conditions")
    if any(c.get("type") == "Initialized" and c.get("status") == "True" for c in conditions):
        return True
    return not _initializing(body)


def _initializing(body: Body) -> str:
    """The status of the first unfinished init container; empty if all are finished."""
    sidecars = _sidecars(body)
    for index, entry in enumerate(listed(body, "status", "initContainerStatuses")):
        terminated = dig(entry, "state", "terminated")
        waiting = dig(entry, "state", "waiting", "reason")
        if terminated is not None and not terminated.get("exitCode"):
            continue
        if entry.get("name") in sidecars and entry.get("started"):
            continue
        if terminated is not None:
            return f"Init:{_ended(terminated)}"
        if waiting and waiting != "PodInitializing":
            return f"Init:{waiting}"
        return f"Init:{index}/{len(listed(body, 'spec', 'initContainers'))}"
    return ""


def _of_containers(body: Body, word: str) -> str:
    reasons = list(_held_up(body))
    # Containers are read from last to first, so the first one's reason wins.
    word = reasons[0] if reasons else word
    running = any(
        s.get("ready") and dig(s, "state", "running") is not None for s in listed(body, "status", "containerStatuses")
    )
    if word != "Completed" or not running:
        return word
    true = {c.get("type") for c in listed(body, "status", "conditions") if c.get("status") == "True"}
    return "Running" if "Ready" in true else "NotReady"


def _held_up(body: Body) -> Iterator[str]:
    for entry in listed(body, "status", "containerStatuses"):
        terminated = dig(entry, "state", "terminated")
        if waiting := dig(entry, "state", "waiting", "reason"):
            yield waiting
        elif terminated is not None:
            yield _ended(terminated)


def _ended(terminated: Body) -> str:
    if reason := terminated.get("reason"):
        return str(reason)
    if signal := terminated.get("signal"):
        return f"Signal:{signal}"
    return f"ExitCode:{terminated.get('exitCode') or 0}"


COLUMNS: Columns = {
    ("", "Pod"): (
        NAME,
        Column("Ready", ready),
        Column("Status", status),
        Column("Restarts", restarts),
        AGE,
        Column("IP", at("status", "podIP", default=NONE), wide=True),
        Column("Node", at("spec", "nodeName", default=NONE), wide=True),
        Column("Nominated Node", at("status", "nominatedNodeName", default=NONE), wide=True),
        Column("Readiness Gates", gates, wide=True),
    ),
}
