"""Services that the API server calls - of webhooks, conversions and aggregated APIs - and whether they answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from seatrial.kinds.network.endpoints import SERVICE_LABEL
from seatrial.live.client import Client
from seatrial.live.transport import RefusedRequest
from seatrial.model.resource import Body, Ref, dig, labels_of, listed, metadata

SLICES = ("discovery.k8s.io", "EndpointSlice")


def called_by(body: Body) -> Iterator[Ref]:
    """The Services that an object makes the API server call."""
    clients = [webhook.get("clientConfig") for webhook in listed(body, "webhooks") if isinstance(webhook, dict)]
    clients += [dig(body, "spec", "conversion", "webhook", "clientConfig")]
    if body.get("kind") == "APIService":
        clients += [body.get("spec")]
    for client in clients:
        service = dig(client, "service")
        if isinstance(service, dict) and service.get("name"):
            yield Ref("Service", str(service.get("namespace") or "default"), str(service["name"]))


def has_endpoint(client: Client, service: Ref) -> bool:
    """Whether a Service has an endpoint that counts as ready. Raises `RefusedRequest` if that may not be read."""
    kind = client.served().find(*SLICES)
    if kind is None:
        return False
    slices = client.list(kind, service.namespace, labels=f"{SERVICE_LABEL}={service.name}")
    return any(
        dig(endpoint, "conditions", "ready") is not False for found in slices for endpoint in listed(found, "endpoints")
    )


def unreachable(client: Client, services: Iterable[Ref]) -> Iterator[Ref]:
    """Those without a ready endpoint. Where that may not be read, they are taken to answer."""
    for service in services:
        try:
            if not has_endpoint(client, service):
                yield service
        except RefusedRequest as refused:
            if refused.code != 403:
                raise


def is_behind(workload: Body, services: Iterable[Body]) -> bool:
    """Whether the pods of a workload are selected by one of these Services."""
    labels = labels_of(dig(workload, "spec", "template") or {})
    namespace = metadata(workload).get("namespace")
    return any(
        (selector := dig(service, "spec", "selector"))
        and metadata(service).get("namespace") == namespace
        and selector.items() <= labels.items()
        for service in services
    )
