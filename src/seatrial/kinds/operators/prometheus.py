"""Prometheus Operator: servers become StatefulSets while the operator runs. The servers read the other kinds.

From pkg/prometheus and pkg/alertmanager of prometheus-operator 0.93.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from msgspec import Struct

from seatrial.kinds import Acts, Create, Kind, Need, World
from seatrial.kinds.core import conditions
from seatrial.kinds.core.objectmeta import namespace_of
from seatrial.kinds.operators.reconcile import apply, keep_finalizer, set_condition
from seatrial.kinds.operators.table import release_of
from seatrial.model.resource import Body, Ref, dig, listed, name_of

GROUP = "monitoring.coreos.com"
OPERATOR = "prometheus-operator"
ACTOR = "prometheus-operator"

Path = tuple[str | int, ...]


class PrometheusServer(Struct, frozen=True):
    """A kind that becomes a StatefulSet."""

    kind: str
    prefix: str
    service: str
    """The headless Service that all servers of this kind in a namespace share."""
    image: str
    port: int


SERVERS = {
    server.kind: server
    for server in (
        PrometheusServer("Prometheus", "prometheus", "prometheus-operated", "quay.io/prometheus/prometheus", 9090),
        PrometheusServer(
            "PrometheusAgent", "prom-agent", "prometheus-agent-operated", "quay.io/prometheus/prometheus", 9090
        ),
        PrometheusServer(
            "Alertmanager", "alertmanager", "alertmanager-operated", "quay.io/prometheus/alertmanager", 9093
        ),
        PrometheusServer("ThanosRuler", "thanos-ruler", "thanos-ruler-operated", "quay.io/thanos/thanos", 10902),
    )
}


def server_needs(body: Body) -> Iterator[Need]:
    namespace = namespace_of(body)
    if name := dig(body, "spec", "serviceAccountName"):
        yield Need(Ref("ServiceAccount", namespace, str(name)), "start", ("spec", "serviceAccountName"))
    for field, kind in (("secrets", "Secret"), ("configMaps", "ConfigMap")):
        for index, name in enumerate(listed(body, "spec", field)):
            yield Need(Ref(kind, namespace, str(name)), "start", ("spec", field, index))
    yield from selected_needs(body)


def selected_needs(body: Body) -> Iterator[Need]:
    """Keys of Secrets and ConfigMaps, wherever the spec selects them."""
    for path, kind, named in _selectors(body.get("spec"), ("spec",)):
        optional = bool(named.get("optional"))
        ref = Ref(kind, namespace_of(body), str(named["name"]))
        yield Need(ref, "ready", (*path, "name"), optional=optional, key=str(named.get("key") or ""))


def produces(body: Body) -> Iterator[Ref]:
    server = SERVERS[str(body.get("kind"))]
    yield Ref("StatefulSet", namespace_of(body), f"{server.prefix}-{name_of(body)}", "apps")
    yield Ref("Service", namespace_of(body), server.service)


def behave(body: Body, world: World) -> Acts:
    if (release := release_of(world, OPERATOR)) is None or not (yield from keep_finalizer(body, release)):
        return
    server = SERVERS[str(body.get("kind"))]
    service = Ref("Service", namespace_of(body), server.service)
    if world.get(service) is None:
        yield Create(_service(body, server), owner=body)
    found = world.get(Ref("StatefulSet", namespace_of(body), f"{server.prefix}-{name_of(body)}", "apps"))
    yield from apply(_set(body, server), world, owner=body)
    wanted = _replicas(body)
    available = int(dig(found, "status", "availableReplicas") or 0)
    counted = {
        "paused": bool(dig(body, "spec", "paused")),
        "replicas": wanted,
        "updatedReplicas": wanted,
        "availableReplicas": available,
        "unavailableReplicas": max(wanted - available, 0),
    }
    if found is not None and available >= wanted:
        yield set_condition(body, "Available", "True", "", "", **counted)
    else:
        yield set_condition(body, "Available", "False", "NoPodReady", "", **counted)


def is_available(body: Body) -> bool:
    return conditions.is_true(body, "Available")


def _selectors(value: Any, at: Path) -> Iterator[tuple[Path, str, Body]]:
    """Mappings with only a name and a key: `secret: {name, key}`, `basicAuth: {username: {name, key}}`."""
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _selectors(item, (*at, index))
    elif isinstance(value, dict):
        if isinstance(value.get("key"), str) and value.get("name") and set(value) <= {"name", "key", "optional"}:
            yield at, "ConfigMap" if at[-1] == "configMap" else "Secret", value
            return
        for key, inner in value.items():
            # Containers and volumes belong to the pod.
            if key not in ("containers", "initContainers", "volumes"):
                yield from _selectors(inner, (*at, str(key)))


def _replicas(body: Body) -> int:
    replicas = dig(body, "spec", "replicas")
    return 1 if replicas is None else int(replicas)


def _labels(body: Body, server: PrometheusServer) -> dict[str, str]:
    return {"app.kubernetes.io/managed-by": "prometheus-operator", "app.kubernetes.io/name": server.prefix}


def _service(body: Body, server: PrometheusServer) -> Body:
    ports = [{"name": "web", "port": server.port, "targetPort": server.port}]
    spec = {"clusterIP": "None", "selector": _labels(body, server), "ports": ports}
    meta = {"name": server.service, "namespace": namespace_of(body)}
    return {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": spec}


def _set(body: Body, server: PrometheusServer) -> Body:
    labels = {**_labels(body, server), "app.kubernetes.io/instance": name_of(body)}
    volumes = [
        {"name": f"secret-{name}", "secret": {"secretName": name}} for name in listed(body, "spec", "secrets")
    ] + [{"name": f"configmap-{name}", "configMap": {"name": name}} for name in listed(body, "spec", "configMaps")]
    pod: Body = {"containers": [{"name": server.prefix, "image": server.image}], "volumes": volumes}
    if account := dig(body, "spec", "serviceAccountName"):
        pod["serviceAccountName"] = account
    spec = {
        "replicas": _replicas(body),
        "serviceName": server.service,
        "podManagementPolicy": "Parallel",
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": pod},
    }
    meta = {"name": f"{server.prefix}-{name_of(body)}", "namespace": namespace_of(body), "labels": labels}
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": meta, "spec": spec}


def _server(kind: str) -> Kind:
    needs: Callable[[Body], Iterator[Need]] = server_needs
    return Kind(kind, GROUP, actor=ACTOR, needs=needs, produces=produces, behave=behave, ready=is_available)


READ_BY_SERVERS = ("AlertmanagerConfig", "PodMonitor", "Probe", "PrometheusRule", "ScrapeConfig", "ServiceMonitor")

KINDS = (
    *(_server(kind) for kind in SERVERS),
    *(Kind(kind, GROUP, needs=selected_needs) for kind in READ_BY_SERVERS),
)
