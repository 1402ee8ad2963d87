"""ResourceQuota and LimitRange: limits of a namespace. The API server enforces them; this module computes the usage.

From pkg/quota/v1/evaluator/core of Kubernetes 1.34. Scopes are not modelled.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from seatrial.kinds import Acts, Kind, Status, World, always
from seatrial.kinds.core.objectmeta import is_terminating, namespace_of
from seatrial.kinds.core.quantities import amount, written
from seatrial.kinds.tables.catalogue import CATALOGUE
from seatrial.kinds.workloads.pods import is_finished
from seatrial.model.resource import Body, dig, listed

# Quota names that count objects, and the counted kind.
COUNTED = {
    "pods": "Pod",
    "services": "Service",
    "services.loadbalancers": "Service",
    "services.nodeports": "Service",
    "configmaps": "ConfigMap",
    "secrets": "Secret",
    "persistentvolumeclaims": "PersistentVolumeClaim",
    "replicationcontrollers": "ReplicationController",
    "resourcequotas": "ResourceQuota",
}
SHORT = {"cpu": "requests.cpu", "memory": "requests.memory", "ephemeral-storage": "requests.ephemeral-storage"}


def behave(quota: Body, world: World) -> Acts:
    if not is_terminating(quota):
        hard = dig(quota, "spec", "hard") or {}
        used = {name: written(_used(name, quota, world), binary=_is_bytes(name)) for name in hard}
        yield Status(quota, {"hard": hard, "used": used})


def default_limits(body: Body) -> Body:
    """For containers, the default limit is the maximum, and the default request is the default limit."""
    limits = [_default_limit(limit) for limit in listed(body, "spec", "limits")]
    return {**body, "spec": {**(body.get("spec") or {}), "limits": limits}} if limits else body


def pod_usage(pod: Body) -> Iterator[tuple[str, Fraction]]:
    """The quota usage of a pod: the sum of its containers, or its largest init container."""
    yield "pods", Fraction(1)
    for field in ("requests", "limits"):
        names = {name for container in _containers(pod) for name in dig(container, "resources", field) or {}}
        for name in sorted(names):
            mains = sum((_resource(c, field, name) for c in listed(pod, "spec", "containers")), Fraction(0))
            inits = max((_resource(c, field, name) for c in listed(pod, "spec", "initContainers")), default=Fraction(0))
            yield f"{field}.{name}", max(mains, inits)


def _used(name: str, quota: Body, world: World) -> Fraction:
    namespace = namespace_of(quota)
    name = SHORT.get(name, name)
    if name.startswith("count/"):
        plural, _, group = name.removeprefix("count/").partition(".")
        kind = next((e.kind for e in CATALOGUE.values() if (e.group, e.plural) == (group, plural)), "")
        return Fraction(len(world.all(kind, namespace, group))) if kind else Fraction(0)
    if name == "pods" or (name.startswith(("requests.", "limits.")) and name != "requests.storage"):
        pods = [pod for pod in world.all("Pod", namespace) if not is_finished(pod)]
        return sum((dict(pod_usage(pod)).get(name, Fraction(0)) for pod in pods), Fraction(0))
    if name == "requests.storage":
        claims = world.all("PersistentVolumeClaim", namespace)
        return sum((amount(dig(c, "spec", "resources", "requests", "storage")) for c in claims), Fraction(0))
    found = world.all(COUNTED[name], namespace) if name in COUNTED else []
    return Fraction(sum(_counts(name, body) for body in found))


def _counts(name: str, body: Body) -> int:
    kind = dig(body, "spec", "type")
    if name == "services.loadbalancers":
        return int(kind == "LoadBalancer")
    if name == "services.nodeports":
        return sum(1 for port in listed(body, "spec", "ports") if port.get("nodePort"))
    return 1


def _containers(pod: Body) -> list[Body]:
    return [*listed(pod, "spec", "initContainers"), *listed(pod, "spec", "containers")]


def _resource(container: Body, field: str, name: str) -> Fraction:
    return amount(dig(container, "resources", field, name))


def _is_bytes(name: str) -> bool:
    return name.endswith(("memory", "storage"))


def _default_limit(limit: Body) -> Body:
    if limit.get("type") != "Container":
        return limit
    given = {**(limit.get("max") or {}), **(limit.get("default") or {})}
    requests = {**(limit.get("min") or {}), **given, **(limit.get("defaultRequest") or {})}
    filled = {**limit, "default": given, "defaultRequest": requests}
    return {key: value for key, value in filled.items() if value or key in limit}


KINDS = (
    Kind("ResourceQuota", actor="resourcequota-controller", behave=behave, quick=always),
    Kind("LimitRange", default=default_limits),
)
