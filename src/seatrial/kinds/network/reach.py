"""Whether a Service answers: its ready endpoints, and the workloads behind it. Sends nothing."""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.kinds import World
from seatrial.kinds.core.objectmeta import controller_of
from seatrial.kinds.network.endpoints import SERVICE_LABEL
from seatrial.model.resource import Body, Ref, dig, labels_of, listed, name_of

WORKLOADS = (("DaemonSet", "apps"), ("Deployment", "apps"), ("ReplicaSet", "apps"), ("StatefulSet", "apps"))


def ready_endpoints(namespace: str, name: str, port_name: str, world: World) -> list[tuple[Body, int]]:
    """Each endpoint of a Service that counts as ready, with its port."""
    slices = world.select("EndpointSlice", namespace, {SERVICE_LABEL: name}, "discovery.k8s.io")
    return [
        (endpoint, int(port.get("port") or 0))
        for found in slices
        for port in listed(found, "ports")
        if (port.get("name") or "") == port_name
        for endpoint in listed(found, "endpoints")
        if dig(endpoint, "conditions", "ready") is not False
    ]


def workloads_behind(service: Body, namespace: str, world: World) -> Iterator[Body]:
    """The workloads behind a Service. Reading them makes a client that waits for endpoints wait for them too."""
    return workloads_with(dig(service, "spec", "selector") or {}, namespace, world)


def workloads_with(labels: dict[str, str], namespace: str, world: World) -> Iterator[Body]:
    """The workloads whose pods have these labels."""
    for kind, group in WORKLOADS if labels else ():
        for body in world.all(kind, namespace, group):
            if labels.items() <= labels_of(dig(body, "spec", "template") or {}).items():
                found = world.get(Ref(kind, namespace, name_of(body), group))
                if found is not None and controller_of(found) is None:
                    yield found


def services_of(workload: Body, namespace: str, world: World) -> Iterator[Body]:
    """The Services in front of a workload or pod. Who waits for it sees their endpoints follow, too."""
    labels = labels_of(dig(workload, "spec", "template") or workload)
    for body in world.all("Service", namespace):
        selector = dig(body, "spec", "selector") or {}
        if selector and selector.items() <= labels.items():
            found = world.get(Ref("Service", namespace, name_of(body)))
            if found is not None:
                yield found
