"""Service: an address for the pods that a selector matches. Its endpoints follow their readiness."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

from seatrial.kinds import Acts, Kind, Status, World
from seatrial.kinds.core.immutable import NEWEST, invalid, scalar, texts
from seatrial.kinds.core.objectmeta import is_terminating, namespace_of
from seatrial.kinds.network import addresses, endpoints
from seatrial.model.resource import Body, Ref, dig, listed, name_of

NODE_PORTS = (30000, 2768)
"""The first port, and how many."""
EXPOSED = ("LoadBalancer", "NodePort")
"""The types that have node ports."""
SET_ONCE = "may not change once set"


def behave(service: Body, world: World) -> Acts:
    if is_terminating(service):
        return
    balanced = _type(service) == "LoadBalancer"
    has_address = bool(listed(service, "status", "loadBalancer", "ingress"))
    if balanced != has_address and (has_address or addresses.are_given(addresses.LOAD_BALANCERS, world)):
        # The cloud controller assigns an address of TEST-NET-3, and releases it.
        ingress = [{"ip": f"203.0.113.{1 + _number(service) % 254}", "ipMode": "VIP"}]
        yield Status(service, {"loadBalancer": {"ingress": ingress} if balanced else {}})
    if dig(service, "spec", "selector") and _type(service) != "ExternalName":
        yield from endpoints.update_endpoints(service, world)


def produces(service: Body) -> Iterator[Ref]:
    """The Endpoints of its pods."""
    if dig(service, "spec", "selector") and _type(service) != "ExternalName":
        yield Ref("Endpoints", namespace_of(service), name_of(service))


def default(service: Body) -> Body:
    spec = {"type": "ClusterIP", "sessionAffinity": "None", **(service.get("spec") or {})}
    ports = [{"protocol": "TCP", **port} for port in listed(spec, "ports")]
    if spec["type"] != "ExternalName":
        spec.setdefault("internalTrafficPolicy", "Cluster")
        ports = [{"targetPort": port.get("port"), **port} for port in ports]
    if spec["type"] in EXPOSED:
        spec.setdefault("externalTrafficPolicy", "Cluster")
    if spec["type"] == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)
    if ports:
        spec["ports"] = ports
    return {**service, "spec": spec, "status": {"loadBalancer": {}, **(service.get("status") or {})}}


def prepare(service: Body, old: Body | None) -> Body:
    """Allocate IPs and node ports, or keep the old ones if the new Service names none."""
    kept = (old or {}).get("spec") or {}
    spec = _for_type(dict(service.get("spec") or {}), kept)
    if spec.get("type") == "ExternalName":
        for field in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"):
            spec.pop(field, None)
        return {**service, "spec": spec}
    address = spec.get("clusterIP") or (listed(spec, "clusterIPs") or [""])[0] or kept.get("clusterIP")
    spec["clusterIP"] = address or _address(service)
    if not spec.get("clusterIPs") or spec.get("clusterIPs") == kept.get("clusterIPs"):
        spec["clusterIPs"] = [spec["clusterIP"]]
    spec.setdefault("ipFamilies", kept.get("ipFamilies") or ["IPv4"])
    spec.setdefault("ipFamilyPolicy", kept.get("ipFamilyPolicy") or "SingleStack")
    if spec.get("type") in EXPOSED:
        spec["ports"] = list(_with_node_ports(service, listed(spec, "ports"), listed(kept, "ports")))
    return {**service, "spec": spec}


def _for_type(spec: Body, old: Body) -> Body:
    """Without fields of the old type that the new one does not have and the client did not change.

    Upstream: dropTypeDependentFields in pkg/registry/core/service/strategy.go.
    """
    was, kind = old.get("type"), spec.get("type")
    if not old or was == kind:
        return spec
    dropped = []
    if was in EXPOSED and kind not in EXPOSED:
        dropped.append("externalTrafficPolicy")
        numbers = ({port["nodePort"] for port in listed(one, "ports") if port.get("nodePort")} for one in (old, spec))
        if next(numbers) >= next(numbers):
            ports = [{key: port[key] for key in port if key != "nodePort"} for port in listed(spec, "ports")]
            spec = {**spec, "ports": ports} if ports else spec
    if was == "LoadBalancer":
        dropped += ["allocateLoadBalancerNodePorts", "loadBalancerClass", "healthCheckNodePort"]
    return {key: value for key, value in spec.items() if key not in dropped or old.get(key) != value}


def immutable(old: Body, new: Body, minor: int = NEWEST, /) -> Iterator[str]:
    if "ExternalName" in (_type(old), _type(new)):
        return
    had, has = listed(old, "spec", "clusterIPs"), listed(new, "spec", "clusterIPs")
    if had and not has:
        yield invalid("spec.clusterIPs[0]", texts(has, minor), "primary clusterIP can not be unset")
    elif had[:1] != has[:1]:
        yield invalid("spec.clusterIPs[0]", texts(has, minor), SET_ONCE)
    was, wanted = (dig(body, "spec", "loadBalancerClass") for body in (old, new))
    if was != wanted and _type(old) == _type(new) == "LoadBalancer":
        yield invalid("spec.loadBalancerClass", scalar(wanted, minor), SET_ONCE)


def ready(service: Body) -> bool:
    return _type(service) != "LoadBalancer" or bool(listed(service, "status", "loadBalancer", "ingress"))


def _type(service: Body) -> str:
    return str(dig(service, "spec", "type") or "ClusterIP")


def _number(service: Body) -> int:
    return zlib.crc32(f"{namespace_of(service)}/{name_of(service)}".encode())


def _address(service: Body) -> str:
    number = _number(service)
    return f"10.96.{number >> 8 & 255}.{1 + (number & 255) % 254}"


def _with_node_ports(service: Body, ports: list[Body], old: list[Body]) -> Iterator[Body]:
    known = {port.get("name"): port.get("nodePort") for port in old}
    first, count = NODE_PORTS
    for index, port in enumerate(ports):
        given = port.get("nodePort") or known.get(port.get("name"))
        yield {**port, "nodePort": given or first + (_number(service) + index) % count}


KINDS = (
    Kind(
        "Service",
        actor="service-controller",
        behave=behave,
        quick=ready,
        produces=produces,
        immutable=immutable,
        default=default,
        prepare=prepare,
        ready=ready,
    ),
)
