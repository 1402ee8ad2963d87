"""Whether the API server can call a webhook, and its error if not. Knows nothing of the webhook's response.

From k8s.io/apiserver, pkg/util/webhook and pkg/util/proxy of 1.34, with `--enable-aggregator-routing`: the API server
dials the endpoints of a Service, as on most managed clusters, and not its cluster IP.
"""

from __future__ import annotations

from msgspec import Struct

from seatrial.kinds import World
from seatrial.kinds.network.policies import Peer, blocking
from seatrial.kinds.network.reach import ready_endpoints, workloads_behind
from seatrial.kinds.webhooks.cabundle import has_certificate
from seatrial.kinds.workloads.rollout import rollout_of, size
from seatrial.model.resource import Body, Ref, dig, labels_of, listed

DEFAULT_PORT = 443

NO_CERTIFICATE = "could not get REST client: unable to load root certificates: unable to parse bytes as PEM block"
UNKNOWN_AUTHORITY = "tls: failed to verify certificate: x509: certificate signed by unknown authority"
TIMED_OUT = "context deadline exceeded"


class FailedBackendCall(Struct, frozen=True):
    """A call without a response."""

    message: str
    untrusted: bool = False
    """Whether the certificate is not trusted; otherwise the backend cannot be reached."""


def failure(client: Body, timeout_seconds: int, world: World) -> FailedBackendCall | None:
    """Why a call with this `clientConfig` fails; None if it succeeds. A URL is assumed to respond."""
    bundle = str(client.get("caBundle") or "")
    if bundle and not has_certificate(bundle):
        return FailedBackendCall(NO_CERTIFICATE, untrusted=True)
    service = client.get("service")
    if not isinstance(service, dict):
        return None
    unreachable = _unreachable(service, world)
    why = unreachable or ("" if bundle else UNKNOWN_AUTHORITY)
    message = f'Post "{_url(service)}?timeout={timeout_seconds}s": {why}'
    return FailedBackendCall(message, untrusted=not unreachable) if why else None


def _url(service: Body) -> str:
    host = f"{service.get('name')}.{service.get('namespace')}.svc:{service.get('port') or DEFAULT_PORT}"
    return f"https://{host}/{str(service.get('path') or '').lstrip('/')}"


def _unreachable(service: Body, world: World) -> str:
    name, namespace = str(service.get("name")), str(service.get("namespace"))
    number = int(service.get("port") or DEFAULT_PORT)
    found = world.get(Ref("Service", namespace, name))
    if found is None:
        return f'service "{name}" not found'
    if dig(found, "spec", "type") == "ExternalName":
        return 'unsupported service type "ExternalName"'
    port = next((port for port in listed(found, "spec", "ports") if port.get("port") == number), None)
    if port is None:
        return f'no service port {number} found for service "{name}"'
    endpoints = ready_endpoints(namespace, name, str(port.get("name") or ""), world)
    workloads = list(workloads_behind(found, namespace, world))
    if not endpoints or (
        world.worst_case and workloads and all(_may_be_gone(workload, world) for workload in workloads)
    ):
        return f'no endpoints available for service "{name}"'
    return _no_connection(endpoints, namespace, world)


def _may_be_gone(workload: Body, world: World) -> bool:
    """Whether it is about to replace its pods, and may stop the last old one before the first new one is ready."""
    if workload.get("kind") != "Deployment":
        return False
    rollout = rollout_of(workload, world.owned(workload, "ReplicaSet", "apps"))
    rolled = rollout.new is not None and not size(*rollout.old)
    return bool(rollout.old) and not rolled and (not rollout.rolls or rollout.unavailable_max >= rollout.replicas)


def _no_connection(endpoints: list[tuple[Body, int]], namespace: str, world: World) -> str:
    """A Service may publish unready pods. Which endpoint is dialled is random."""
    unready = [(endpoint, port) for endpoint, port in endpoints if dig(endpoint, "conditions", "serving") is False]
    if unready and (world.worst_case or len(unready) == len(endpoints)):
        endpoint, port = unready[0]
        return f"dial tcp {listed(endpoint, 'addresses')[0]}:{port}: connect: connection refused"
    if world.worst_case and any(_is_blocked(endpoint, port, namespace, world) for endpoint, port in endpoints):
        return TIMED_OUT
    return ""


def _is_blocked(endpoint: Body, port: int, namespace: str, world: World) -> bool:
    """Whether NetworkPolicies block clients outside the pod network. Not every network enforces them."""
    pod = world.get(Ref("Pod", namespace, str(dig(endpoint, "targetRef", "name") or "")))
    if pod is None:
        return False
    policies = world.all("NetworkPolicy", namespace, "networking.k8s.io")
    return bool(blocking(policies, "Ingress", Peer(namespace, labels_of(pod)), None, (port,)))
