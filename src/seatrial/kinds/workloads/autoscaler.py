"""HorizontalPodAutoscaler: finds what it is to scale. There is no load here, so it scales nothing."""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.kinds import Acts, Kind, Need, Say, Status, World
from seatrial.kinds.core.conditions import condition
from seatrial.kinds.core.objectmeta import is_going, namespace_of
from seatrial.kinds.tables.catalogue import plural_of
from seatrial.model.resource import Body, Ref, dig, group_of

CPU_LOAD = {
    "type": "Resource",
    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
}
"""What is measured where nothing is said."""


def needs(scaler: Body) -> Iterator[Need]:
    if target := _target(scaler):
        yield Need(target, "serve", ("spec", "scaleTargetRef", "name"))


def behave(scaler: Body, world: World) -> Acts:
    target = _target(scaler)
    if target is None or is_going(scaler):
        return
    found = world.get(target)
    if found is None:
        plural = plural_of(target.group, target.kind) or f"{target.kind.lower()}s"
        resource = f"{plural}.{target.group}" if target.group else plural
        missing = f'{resource} "{target.name}" not found'
        words = f"the HPA controller was unable to get the target's current scale: {missing}"
        yield Status(scaler, _status(scaler, "False", "FailedGetScale", words, 0))
        yield Say(scaler, "FailedGetScale", missing)
        return
    words = "the HPA controller was able to get the target's current scale"
    replicas = int(dig(found, "status", "replicas") or 0)
    yield Status(scaler, _status(scaler, "True", "SucceededGetScale", words, replicas))


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


def _status(scaler: Body, status: str, reason: str, words: str, replicas: int) -> Body:
    return {
        "conditions": [condition(scaler, "AbleToScale", status, reason, words)],
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
