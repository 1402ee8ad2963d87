"""HorizontalPodAutoscaler: finds its scale target. There is no load here, so it never scales."""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.kinds import Acts, Emit, Kind, Need, Status, World
from seatrial.kinds.core.conditions import condition
from seatrial.kinds.core.objectmeta import is_terminating, namespace_of
from seatrial.kinds.tables.catalogue import plural_of
from seatrial.model.resource import Body, Ref, dig, group_of

CPU_LOAD = {
    "type": "Resource",
    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
}
"""The default metric."""


def needs(scaler: Body) -> Iterator[Need]:
    if target := _target(scaler):
        yield Need(target, "serve", ("spec", "scaleTargetRef", "name"))


def behave(scaler: Body, world: World) -> Acts:
    target = _target(scaler)
    if target is None or is_terminating(scaler):
        return
    found = world.get(target)
    if found is None:
        plural = plural_of(target.group, target.kind) or f"{target.kind.lower()}s"
        resource = f"{plural}.{target.group}" if target.group else plural
        missing = f'{resource} "{target.name}" not found'
        message = f"the HPA controller was unable to get the target's current scale: {missing}"
        yield Status(scaler, _status(scaler, "False", "FailedGetScale", message, 0))
        yield Emit(scaler, "FailedGetScale", missing, missing=(target,))
        return
    message = "the HPA controller was able to get the target's current scale"
    replicas = int(dig(found, "status", "replicas") or 0)
    yield Status(scaler, _status(scaler, "True", "SucceededGetScale", message, replicas))


def default(scaler: Body) -> Body:
    spec = {"minReplicas": 1, **(scaler.get("spec") or {})}
    if str(scaler.get("apiVersion")).endswith("/v2"):
        spec.setdefault("metrics", [CPU_LOAD])
    return {**scaler, "spec": spec}


def _target(scaler: Body) -> Ref | None:
    target = dig(scaler, "spec", "scaleTargetRef") or {}
    if not target.get("name"):
        return None
    group = group_of(str(target.get("apiVersion") or ""))
    return Ref(str(target.get("kind")), namespace_of(scaler), str(target["name"]), group)


def _status(scaler: Body, status: str, reason: str, message: str, replicas: int) -> Body:
    return {
        "conditions": [condition(scaler, "AbleToScale", status, reason, message)],
        "currentReplicas": replicas,
        "desiredReplicas": replicas,
        "currentMetrics": None,
    }


KINDS = (
    Kind(
        "HorizontalPodAutoscaler",
        "autoscaling",
        actor="horizontal-pod-autoscaler",
        needs=needs,
        behave=behave,
        default=default,
    ),
)
