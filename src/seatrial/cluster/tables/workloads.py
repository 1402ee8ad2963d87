"""Columns of `kubectl get` for pod controllers."""

from __future__ import annotations

from seatrial.cluster.tables.age import between, parsed
from seatrial.cluster.tables.column import (
    AGE,
    NAME,
    NONE,
    Cell,
    Column,
    Columns,
    ago,
    at,
    count,
    joined,
    labels_shown,
    number,
    selector,
    share,
)
from seatrial.model.resource import Body, dig, listed, metadata


def _wide(selector: Cell | None, *template: str) -> tuple[Column, ...]:
    """The columns that `-o wide` adds for kinds with a pod template."""
    containers = (*template, "spec", "containers")
    found = (
        Column("Containers", lambda b, now: joined((c.get("name") for c in listed(b, *containers)), ""), wide=True),
        Column("Images", lambda b, now: joined((c.get("image") for c in listed(b, *containers)), ""), wide=True),
    )
    return found if selector is None else (*found, Column("Selector", selector, wide=True))


def _job_status(body: Body, now: str) -> str:
    true = {c.get("type") for c in listed(body, "status", "conditions") if c.get("status") == "True"}
    if "Complete" in true or "Failed" in true:
        return "Complete" if "Complete" in true else "Failed"
    if metadata(body).get("deletionTimestamp"):
        return "Terminating"
    return next((name for name in ("Suspended", "FailureTarget", "SuccessCriteriaMet") if name in true), "Running")


def _completions(body: Body, now: str) -> str:
    done, wanted = dig(body, "status", "succeeded") or 0, dig(body, "spec", "completions")
    at_once = dig(body, "spec", "parallelism") or 0
    if wanted is not None:
        return f"{done}/{wanted}"
    return f"{done}/1 of {at_once}" if at_once > 1 else f"{done}/1"


def _duration(body: Body, now: str) -> str:
    start = parsed(dig(body, "status", "startTime"))
    end = parsed(dig(body, "status", "completionTime") or now)
    return between(start, end) if start and end else ""


def _targets(body: Body, now: str) -> str:
    shown = []
    current = listed(body, "status", "currentMetrics")
    for index, metric in enumerate(listed(body, "spec", "metrics")):
        source = {"ContainerResource": "containerResource"}.get(metric.get("type"), str(metric.get("type")).lower())
        target = dig(metric, source, "target") or {}
        seen = dig(current, index, source, "current") or {}
        name = f"{dig(metric, source, 'name')}: " if source in ("resource", "containerResource") else ""
        shown.append(name + _target(target, seen))
    more = f" + {len(shown) - 2} more..." if len(shown) > 2 else ""
    return (", ".join(shown[:2]) or NONE) + more


def _target(target: Body, seen: Body) -> str:
    for key, unit in (("averageUtilization", "%"), ("averageValue", ""), ("value", "")):
        if target.get(key) is not None:
            now = f"{seen[key]}{unit}" if seen.get(key) is not None else "<unknown>"
            return f"{now}/{target[key]}{unit}"
    return "<unknown>/<auto>"


def _limit(key: str) -> Cell:
    return lambda body, now: str(at("spec", key, default="N/A")(body, now))


def _scaled(body: Body, now: str) -> str:
    return f"{dig(body, 'spec', 'scaleTargetRef', 'kind')}/{dig(body, 'spec', 'scaleTargetRef', 'name')}"


_SELECTED = _wide(selector("spec", "selector"), "spec", "template")
_READY = Column("Ready", share(("status", "readyReplicas"), ("spec", "replicas")))

COLUMNS: Columns = {
    ("apps", "DaemonSet"): (
        NAME,
        number("Desired", "status", "desiredNumberScheduled"),
        number("Current", "status", "currentNumberScheduled"),
        number("Ready", "status", "numberReady"),
        number("Up-to-date", "status", "updatedNumberScheduled"),
        number("Available", "status", "numberAvailable"),
        Column("Node Selector", lambda body, now: labels_shown(dig(body, "spec", "template", "spec", "nodeSelector"))),
        AGE,
        *_SELECTED,
    ),
    ("apps", "Deployment"): (
        NAME,
        _READY,
        Column("Up-to-date", at("status", "updatedReplicas", default=0)),
        Column("Available", at("status", "availableReplicas", default=0)),
        AGE,
        *_SELECTED,
    ),
    ("apps", "ReplicaSet"): (
        NAME,
        number("Desired", "spec", "replicas"),
        number("Current", "status", "replicas"),
        number("Ready", "status", "readyReplicas"),
        AGE,
        *_SELECTED,
    ),
    ("apps", "StatefulSet"): (NAME, _READY, AGE, *_wide(None, "spec", "template")),
    ("autoscaling", "HorizontalPodAutoscaler"): (
        NAME,
        Column("Reference", _scaled),
        Column("Targets", _targets),
        Column("MinPods", lambda body, now: str(dig(body, "spec", "minReplicas") or "<unset>")),
        Column("MaxPods", at("spec", "maxReplicas", default=0)),
        Column("Replicas", at("status", "currentReplicas", default=0)),
        AGE,
    ),
    ("batch", "CronJob"): (
        NAME,
        Column("Schedule", at("spec", "schedule")),
        Column("Timezone", at("spec", "timeZone", default=NONE)),
        Column("Suspend", lambda body, now: str(bool(dig(body, "spec", "suspend"))), "boolean"),
        Column("Active", count(("status", "active")), "integer"),
        Column("Last Schedule", ago("status", "lastScheduleTime", default=NONE)),
        AGE,
        *_wide(selector("spec", "jobTemplate", "spec", "selector"), "spec", "jobTemplate", "spec", "template"),
    ),
    ("batch", "Job"): (
        NAME,
        Column("Status", _job_status),
        Column("Completions", _completions),
        Column("Duration", _duration),
        AGE,
        *_SELECTED,
    ),
    ("policy", "PodDisruptionBudget"): (
        NAME,
        Column("Min Available", _limit("minAvailable")),
        Column("Max Unavailable", _limit("maxUnavailable")),
        number("Allowed Disruptions", "status", "disruptionsAllowed"),
        AGE,
    ),
}
