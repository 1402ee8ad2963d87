"""Validation of HorizontalPodAutoscalers. The order follows autoscaling/validation."""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.cluster.validation import Rules
from seatrial.cluster.validation.causes import forbidden, invalid, required, unsupported
from seatrial.model.resource import Body

# Metric types and the field of each.
_SOURCES = {
    "ContainerResource": "containerResource",
    "External": "external",
    "Object": "object",
    "Pods": "pods",
    "Resource": "resource",
}
_TARGET_TYPES = ("Utilization", "Value", "AverageValue")


def _autoscaler(body: Body) -> Iterator[str]:
    spec = body.get("spec") or {}
    least, most = spec.get("minReplicas"), spec.get("maxReplicas") or 0
    if least is not None and least < 1:
        yield invalid("spec.minReplicas", least, "must be greater than or equal to 1")
    if most < 1:
        yield invalid("spec.maxReplicas", most, "must be greater than 0")
    if most < (1 if least is None else least):
        yield invalid("spec.maxReplicas", most, "must be greater than or equal to `minReplicas`")
    yield from _target("spec.scaleTargetRef", spec.get("scaleTargetRef") or {})
    metrics = spec.get("metrics") or []
    for index, metric in enumerate(metrics):
        yield from _metric(f"spec.metrics[{index}]", metric)
    if least == 0 and not any(metric.get("type") in ("Object", "External") for metric in metrics):
        detail = "must specify at least one Object or External metric to support scaling to zero replicas"
        yield forbidden("spec.metrics", detail)
    for direction in ("scaleUp", "scaleDown"):
        policies = ((spec.get("behavior") or {}).get(direction) or {}).get("policies") or ()
        for index, policy in enumerate(policies):
            yield from _policy(f"spec.behavior.{direction}.policies[{index}]", policy)


def _target(at: str, target: Body) -> Iterator[str]:
    for key in ("kind", "name"):
        if not target.get(key):
            yield required(f"{at}.{key}")
    version = target.get("apiVersion") or ""
    if "/" not in version and target.get("kind") != "ReplicationController":
        yield invalid(f"{at}.apiVersion", version, "apiVersion must specify API group")


def _metric(at: str, metric: Body) -> Iterator[str]:
    source = metric.get("type") or ""
    if not source:
        yield required(f"{at}.type", "must specify a metric source type")
    if source not in _SOURCES:
        yield unsupported(f"{at}.type", source, _SOURCES)
        return
    key = _SOURCES[source]
    found = metric.get(key)
    if found is None:
        yield required(f"{at}.{key}", "must populate information for the given metric source")
    elif source == "Resource":
        if not found.get("name"):
            yield required(f"{at}.{key}.name", "must specify a resource name")
        yield from _resource_target(f"{at}.{key}.target", found.get("target") or {})


def _resource_target(at: str, target: Body) -> Iterator[str]:
    kind, share, value = target.get("type") or "", target.get("averageUtilization"), target.get("averageValue")
    if not kind:
        yield required(f"{at}.type", "must specify a metric target type")
    if kind not in _TARGET_TYPES:
        yield invalid(f"{at}.type", kind, "must be either Utilization, Value, or AverageValue")
    if share is not None and share < 1:
        yield invalid(f"{at}.averageUtilization", share, "must be greater than 0")
    if share is None and value is None:
        detail = "must set either a target raw value or a target utilization"
        yield required(f"{at}.averageUtilization", detail)
    if share is not None and value is not None:
        yield forbidden(f"{at}.averageValue", "may not set both a target raw value and a target utilization")


def _policy(at: str, policy: Body) -> Iterator[str]:
    if policy.get("type") not in ("Percent", "Pods"):
        yield unsupported(f"{at}.type", policy.get("type") or "", ("Percent", "Pods"))
    for key in ("value", "periodSeconds"):
        if (policy.get(key) or 0) <= 0:
            yield invalid(f"{at}.{key}", policy.get(key) or 0, "must be greater than zero")


RULES: Rules = {("autoscaling", "HorizontalPodAutoscaler"): _autoscaler}
