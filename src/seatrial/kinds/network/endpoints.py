"""EndpointSlice and Endpoints: the pods behind a Service. A hook's pod that matches the selector is one of them.

From k8s.io/endpointslice and pkg/controller/endpoint of Kubernetes 1.34.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from seatrial.kinds import Acts, Create, Delete, Kind, Update, World, always
from seatrial.kinds.core.objectmeta import is_terminating, namespace_of
from seatrial.kinds.workloads.pods import is_finished, is_ready
from seatrial.model.resource import Body, Ref, dig, labels_of, listed, name_of, uid_of

SERVICE_LABEL = "kubernetes.io/service-name"
SLICE_LABELS = {"endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io"}
ENDPOINTS_LABELS = {"endpoints.kubernetes.io/managed-by": "endpoint-controller"}
HEADLESS = {"service.kubernetes.io/headless": ""}

Ports = tuple[tuple[str, int, str], ...]
"""(name, port, protocol) of one pod's ports."""


def update_endpoints(service: Body, world: World) -> Acts:
    """Update the EndpointSlices and Endpoints of a Service."""
    pods = [pod for pod in _backends(service, world) if dig(pod, "status", "podIP") and not is_finished(pod)]
    groups: dict[Ports, list[Body]] = {}
    for pod in pods:
        groups.setdefault(tuple(ports_of(service, pod)), []).append(pod)
    yield from _slices(service, groups or {(): []}, world)
    yield from _endpoints(service, groups, world)


def has_ready(slices: list[Body], port_name: str = "") -> bool:
    """Whether a slice has a ready endpoint at this port."""
    return any(
        any(dig(endpoint, "conditions", "ready") is not False for endpoint in listed(found, "endpoints"))
        and any((port.get("name") or "") == port_name for port in listed(found, "ports"))
        for found in slices
    )


def ports_of(service: Body, pod: Body) -> Iterator[tuple[str, int, str]]:
    """(name, number, protocol) of the pod ports that a Service targets."""
    for port in listed(service, "spec", "ports"):
        protocol = str(port.get("protocol") or "TCP")
        number = _target(port.get("targetPort") or port.get("port"), protocol, pod)
        if number is not None:
            yield str(port.get("name") or ""), number, protocol


def behave_endpoints(body: Body, world: World) -> Acts:
    """Endpoints have no owner: their controller deletes them with the Service."""
    managed = labels_of(body).items() >= ENDPOINTS_LABELS.items()
    if managed and not is_terminating(body) and world.get(Ref("Service", namespace_of(body), name_of(body))) is None:
        yield Delete(body, why="its Service is gone")


def _backends(service: Body, world: World) -> list[Body]:
    return world.select("Pod", namespace_of(service), dig(service, "spec", "selector"))


def _target(wanted: Any, protocol: str, pod: Body) -> int | None:
    """The number of a target port. A port name is looked up in the pod's containers; None if it is not there."""
    if isinstance(wanted, int) or str(wanted).isdigit():
        return int(wanted)
    for container in listed(pod, "spec", "containers"):
        for port in listed(container, "ports"):
            if port.get("name") == wanted and port.get("protocol", "TCP") == protocol:
                return int(port["containerPort"])
    return None


def _slices(service: Body, groups: dict[Ports, list[Body]], world: World) -> Acts:
    """One slice for each set of ports. Existing slices are updated before new ones are created."""
    existing = [
        found for found in world.owned(service, "EndpointSlice", "discovery.k8s.io") if not is_terminating(found)
    ]
    wanted = [_slice(service, ports, pods) for ports, pods in sorted(groups.items())]
    for body in wanted:
        if not existing:
            yield Create(body, owner=service)
            continue
        found = existing.pop(0)
        yield Update({**found, **{key: body[key] for key in ("endpoints", "ports", "addressType")}})
    for rest in existing:
        yield Delete(rest, why="it has no endpoints")


def _slice(service: Body, ports: Ports, pods: list[Body]) -> Body:
    labels = {**SLICE_LABELS, SERVICE_LABEL: name_of(service), **_headless(service)}
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "generateName": f"{name_of(service)}-",
            "namespace": namespace_of(service),
            "labels": labels,
        },
        "addressType": "IPv4",
        "endpoints": [_endpoint(service, pod) for pod in pods],
        "ports": [{"name": name, "port": number, "protocol": protocol} for name, number, protocol in ports],
    }


def _endpoint(service: Body, pod: Body) -> Body:
    serving = is_ready(pod)
    public = bool(dig(service, "spec", "publishNotReadyAddresses"))
    return {
        "addresses": [dig(pod, "status", "podIP")],
        "conditions": {
            "ready": public or (serving and not is_terminating(pod)),
            "serving": serving,
            "terminating": is_terminating(pod),
        },
        "nodeName": dig(pod, "spec", "nodeName"),
        "targetRef": _target_ref(pod),
    }


def _endpoints(service: Body, groups: dict[Ports, list[Body]], world: World) -> Acts:
    subsets = [subset for ports, pods in sorted(groups.items()) if (subset := _subset(service, ports, pods))]
    found = world.get(Ref("Endpoints", namespace_of(service), name_of(service)))
    if found is None:
        meta = {
            "name": name_of(service),
            "namespace": namespace_of(service),
            "labels": {**labels_of(service), **ENDPOINTS_LABELS, **_headless(service)},
        }
        body: Body = {"apiVersion": "v1", "kind": "Endpoints", "metadata": meta}
        yield Create({**body, "subsets": subsets} if subsets else body)
        return
    rest = {key: value for key, value in found.items() if key != "subsets"}
    yield Update({**rest, "subsets": subsets} if subsets else rest)


def _subset(service: Body, ports: Ports, pods: list[Body]) -> Body:
    public = bool(dig(service, "spec", "publishNotReadyAddresses"))
    remaining = [pod for pod in pods if public or not is_terminating(pod)]
    lists = {
        "addresses": [_address(pod) for pod in remaining if public or is_ready(pod)],
        "notReadyAddresses": [_address(pod) for pod in remaining if not (public or is_ready(pod))],
    }
    found: Body = {field: addresses for field, addresses in lists.items() if addresses}
    if found:
        found["ports"] = [
            {"name": name, "port": number, "protocol": protocol} if name else {"port": number, "protocol": protocol}
            for name, number, protocol in ports
        ]
    return found


def _address(pod: Body) -> Body:
    return {
        "ip": dig(pod, "status", "podIP"),
        "nodeName": dig(pod, "spec", "nodeName"),
        "targetRef": _target_ref(pod),
    }


def _target_ref(pod: Body) -> Body:
    return {"kind": "Pod", "name": name_of(pod), "namespace": namespace_of(pod), "uid": uid_of(pod)}


def _headless(service: Body) -> dict[str, str]:
    return HEADLESS if dig(service, "spec", "clusterIP") == "None" else {}


KINDS = (
    Kind("Endpoints", actor="endpoint-controller", behave=behave_endpoints, quick=always),
    Kind("EndpointSlice", "discovery.k8s.io", actor="endpointslice-controller"),
)
