"""Node ports and addresses that Services name: each belongs to one Service only.

Upstream: storage/alloc.go and portallocator in pkg/registry/core/service of Kubernetes 1.34. The API server allocates
before it validates. The range of cluster IPs is not known here.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from seatrial.cluster.refusal import invalid
from seatrial.kinds import World
from seatrial.kinds.core import immutable
from seatrial.kinds.network.service import EXPOSED, NODE_PORTS
from seatrial.kinds.tables.catalogue import ServedKind
from seatrial.model.resource import Body, Ref, dig, listed, metadata, name_of

TAKEN = "provided port is already allocated"
TAKEN_ADDRESS = "provided IP is already allocated"


def refuse_allocated(kind: ServedKind, service: Body, old: Body | None, world: World, minor: int) -> None:
    """Refuse a Service that names a port or an address of another one, or a port that no node opens."""
    if kind.group or kind.kind != "Service":
        return
    if causes := [*_addresses(service, old, world, minor), *_ports(service, old, world)]:
        raise invalid("Service", "", name_of(service), causes[:1])


def _addresses(service: Body, old: Body | None, world: World, minor: int) -> Iterator[str]:
    address, had = dig(service, "spec", "clusterIP"), dig(old, "spec", "clusterIP")
    if not address or address == "None" or had or dig(service, "spec", "type") == "ExternalName":
        return
    if any(dig(one, "spec", "clusterIP") == address and _names(one, "clusterIP") for one in _others(service, world)):
        why = f"failed to allocate IP {address}: {TAKEN_ADDRESS}"
        yield immutable.invalid("spec.clusterIPs", immutable.texts([address], minor), why)


def _ports(service: Body, old: Body | None, world: World) -> Iterator[str]:
    if dig(service, "spec", "type") not in EXPOSED:
        return
    own = {port.get("nodePort") for port in listed(old or {}, "spec", "ports")}
    first, count = NODE_PORTS
    for index, port in enumerate(listed(service, "spec", "ports")):
        number = port.get("nodePort")
        if not number or number in own:
            continue
        at = f"spec.ports[{index}].nodePort"
        if not first <= number < first + count:
            span = f"{first}-{first + count - 1}"
            why = f"provided port is not in the valid range. The range of valid ports is {span}"
            yield immutable.invalid(at, str(number), why)
        elif any(_has(one, number) for one in _others(service, world)):
            yield immutable.invalid(at, str(number), TAKEN)


def _has(service: Body, number: int) -> bool:
    """A port that the API server chose by itself is none that another Service names: it chooses from all free ones."""
    ports = listed(service, "spec", "ports")
    return any(port.get("nodePort") == number for port in ports) and _names(service, "nodePort")


def _names(service: Body, field: str) -> bool:
    """Whether a client has set this field: what the API server generates has no manager."""
    return f'"f:{field}"'.encode() in msgspec.json.encode(listed(service, "metadata", "managedFields"))


def _others(service: Body, world: World) -> Iterator[Body]:
    own = Ref("Service", str(metadata(service).get("namespace") or ""), name_of(service))
    for other in world.all("Service"):
        if Ref("Service", str(metadata(other).get("namespace") or ""), name_of(other)) != own:
            yield other
