"""APIService: kinds that a Service in the cluster serves. They are unavailable while it is.

From k8s.io/kube-aggregator (controllers/status) of Kubernetes 1.34.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.kinds import Acts, Kind, Need, Status, World
from seatrial.kinds.core import conditions
from seatrial.kinds.core.conditions import condition
from seatrial.kinds.core.objectmeta import is_terminating
from seatrial.kinds.network.endpoints import SERVICE_LABEL, has_ready
from seatrial.kinds.operators.cert_manager import injection_needs
from seatrial.kinds.webhooks import cabundle
from seatrial.model.resource import Body, Ref, dig, listed

GROUP = "apiregistration.k8s.io"


def needs(api: Body) -> Iterator[Need]:
    yield from injection_needs(api)
    if service := _service(api):
        yield Need(service, "serve", ("spec", "service", "name"))


def behave(api: Body, world: World) -> Acts:
    if is_terminating(api):
        return
    for act in cabundle.behave(api, world):
        yield act
        return
    status, reason, message = _availability(api, world)
    yield Status(api, {"conditions": [condition(api, "Available", status, reason, message)]})


def default(api: Body) -> Body:
    service = dig(api, "spec", "service")
    if not isinstance(service, dict):
        return api
    return {**api, "spec": {**api["spec"], "service": {"port": 443, **service}}}


def group_version_of(api: Body) -> tuple[str, str]:
    """The (group, version) that it serves."""
    return str(dig(api, "spec", "group") or ""), str(dig(api, "spec", "version") or "")


def ready(api: Body) -> bool:
    return conditions.is_true(api, "Available")


def _service(api: Body) -> Ref | None:
    service = dig(api, "spec", "service") or {}
    if not service.get("name"):
        return None
    return Ref("Service", str(service.get("namespace") or ""), str(service["name"]))


def _availability(api: Body, world: World) -> tuple[str, str, str]:
    ref = _service(api)
    if ref is None:
        return "True", "Local", "Local APIServices are always available"
    found = world.get(ref)
    where = f'service/{ref.name} in "{ref.namespace}"'
    if found is None:
        return "False", "ServiceNotFound", f"{where} is not present"
    if dig(found, "spec", "type") in (None, "ClusterIP"):
        wanted = dig(api, "spec", "service", "port") or 443
        port = next((port for port in listed(found, "spec", "ports") if port.get("port") == wanted), None)
        if port is None:
            return "False", "ServicePortError", f"{where} is not listening on port {wanted}"
        slices = world.select("EndpointSlice", ref.namespace, {SERVICE_LABEL: ref.name}, "discovery.k8s.io")
        if not slices:
            return "False", "EndpointsNotFound", f"cannot find endpointslices for {where}"
        name = str(port.get("name") or "")
        if not has_ready(slices, name):
            message = f'endpointslices for {where} have no addresses with port name "{name}"'
            return "False", "MissingEndpoints", message
    return "True", "Passed", "all checks passed"


KINDS = (
    Kind("APIService", GROUP, actor="apiservice-controller", needs=needs, behave=behave, default=default, ready=ready),
)
