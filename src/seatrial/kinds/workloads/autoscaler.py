"""HorizontalPodAutoscaler: keeps its target between minReplicas and maxReplicas. There is no load here, so no more.

From reconcileAutoscaler in pkg/controller/podautoscaler/horizontal.go of Kubernetes 1.34. It writes through the scale
subresource, and owns `spec.replicas` from then on.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.kinds import Acts, Call, Emit, Kind, Need, Status, World
from seatrial.kinds.core.conditions import condition
from seatrial.kinds.core.objectmeta import is_terminating, namespace_of
from seatrial.kinds.tables.catalogue import plural_of
from seatrial.model.resource import Body, Ref, dig, group_of

CPU_LOAD = {
    "type": "Resource",
    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
}
"""The default metric."""
ACTOR = "horizontal-pod-autoscaler"
MANAGER = "kube-controller-manager"
SCALED = ("Deployment", "ReplicaSet", "ReplicationController", "StatefulSet")
BOUNDS = ("minReplicas", "maxReplicas")


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
    wanted, why = _bounded(scaler, found)
    if why and (yield _scale(target, str(found.get("apiVersion")), wanted)) is None:
        yield Emit(scaler, "SuccessfulRescale", f"New size: {wanted}; reason: {why}", warning=False)
    yield Status(scaler, _status(scaler, "True", "SucceededGetScale", message, replicas))


def _bounded(scaler: Body, target: Body) -> tuple[int, str]:
    """The replicas that the target should have and why, if it has fewer or more than allowed. 0 turns scaling off."""
    replicas = dig(target, "spec", "replicas")
    if replicas == 0 or target.get("kind") not in SCALED or is_terminating(target):
        return 0, ""
    now, least, most = (int(value or 1) for value in (replicas, *(dig(scaler, "spec", key) for key in BOUNDS)))
    if now > most:
        return most, "Current number of replicas above Spec.MaxReplicas"
    return (least, "Current number of replicas below Spec.MinReplicas") if now < least else (now, "")


def _scale(target: Ref, api_version: str, replicas: int) -> Call:
    return Call(
        "patch",
        api_version,
        target.kind,
        ACTOR,
        target.namespace,
        target.name,
        {"spec": {"replicas": replicas}},
        "merge",
        "scale",
        MANAGER,
    )


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
        actor=ACTOR,
        needs=needs,
        behave=behave,
        default=default,
    ),
)
