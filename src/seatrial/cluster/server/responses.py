"""HTTP responses: objects, discovery, OpenAPI, health and tables. No sockets."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from seatrial.cluster.cluster import Cluster
from seatrial.cluster.discovery.served import AGGREGATED
from seatrial.cluster.refusal import UNKNOWN_RESOURCE, Refused, method_not_allowed, unknown_resource
from seatrial.cluster.request import Request
from seatrial.cluster.server import routes
from seatrial.cluster.server.options import Query
from seatrial.cluster.tables import table
from seatrial.cluster.tables.partial import as_partial, wants_partial
from seatrial.kinds.access.authorizer import ADMIN, User
from seatrial.model.resource import Body

JSON = "application/json"
OPENAPI_V2 = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
HEALTH = ("/healthz", "/livez", "/readyz")


class HttpResponse(Struct, frozen=True):
    code: int
    body: bytes
    content_type: str = JSON
    warnings: tuple[str, ...] = ()


class HttpRequest(Struct, frozen=True):
    """One HTTP request and its client."""

    method: str
    path: str
    query: str = ""
    content_type: str = ""
    accept: str = ""
    body: bytes = b""
    actor: str = ""
    agent: str = ""
    user: User = ADMIN


def reply_to(cluster: Cluster, request: HttpRequest, parsed: list[Request] | None = None) -> HttpResponse:
    """The response to a request that is not a watch. `parsed` keeps what it is, for one that is sent again."""
    try:
        return _response(cluster, request, [] if parsed is None else parsed)
    except Refused as refused:
        return refusal(refused.code, refused.status())


def refusal(code: int, status: Body) -> HttpResponse:
    """A Status; for a path at which nothing is served the text of Go's HTTP server, and clients add their own words."""
    if status.get("message") == UNKNOWN_RESOURCE:
        return HttpResponse(code, b"404 page not found\n", "text/plain; charset=utf-8")
    return HttpResponse(code, msgspec.json.encode(status))


def _response(cluster: Cluster, request: HttpRequest, parsed: list[Request]) -> HttpResponse:
    if (response := _without_objects(cluster, request.path, request.accept)) is not None:
        if request.method not in ("GET", "HEAD"):
            raise method_not_allowed()
        return response
    if not parsed:
        parsed.append(_parsed(request))
    api_request = parsed[0]
    if api_request.subresource == "log":
        return _log(cluster, api_request)
    reply = cluster.request(api_request)
    if reply.code == 404:
        return refusal(reply.code, reply.body)
    if reply.code == 200 and api_request.verb in ("get", "list") and not api_request.subresource:
        if table.wants_table(request.accept):
            return HttpResponse(
                200, msgspec.json.encode(_table(cluster, api_request, reply.body, Query(request.query))), table.TABLE
            )
        if wants_partial(request.accept):
            return HttpResponse(200, msgspec.json.encode(as_partial(reply.body)))
    return HttpResponse(reply.code, msgspec.json.encode(reply.body), warnings=reply.warnings)


def _parsed(http: HttpRequest) -> Request:
    request = routes.to_request(http.method, http.path, Query(http.query), http.content_type, http.body, http.actor)
    named = request.field_manager or request.patch_type == "apply" or request.subresource == "log"
    manager = request.field_manager if named else http.agent
    return msgspec.structs.replace(request, user=http.user, field_manager=manager)


def _log(cluster: Cluster, request: Request) -> HttpResponse:
    """Containers have no logs here, but the pod must exist."""
    reply = cluster.request(request)
    if reply.code != 200:
        return HttpResponse(reply.code, msgspec.json.encode(reply.body))
    return HttpResponse(200, b"", "text/plain")


def _table(cluster: Cluster, request: Request, body: Body, query: Query) -> Body:
    kind = cluster.discovery.find(request.group, request.version, request.plural)
    assert kind is not None  # It was found to answer the request.
    return table.as_table(kind, body, cluster.store.now(), cluster.printer_columns(kind), query.get("includeObject"))


def _without_objects(cluster: Cluster, path: str, accept: str) -> HttpResponse | None:
    """Responses that are not objects; None if the path names a resource."""
    if path.startswith(HEALTH):
        return HttpResponse(200, b"ok", "text/plain")
    if path == "/openapi/v2":
        # Helm and kubectl request it for a kind that is not served. With an empty document they report the missing
        # kind.
        return HttpResponse(200, b"", OPENAPI_V2)
    if path.startswith("/openapi/"):
        document = cluster.openapi.document(path)
        if document is None:
            raise unknown_resource()
        return HttpResponse(200, document)
    if path.count("/") > 3:
        return None
    # Clients up to Kubernetes 1.29 know aggregated discovery only as v2beta1, and take the separate documents instead.
    aggregated = AGGREGATED.removeprefix("application/json;") in accept
    document = cluster.discovery.document(path, aggregated=aggregated)
    if document is None:
        return None
    shown = AGGREGATED if aggregated and path.rstrip("/") in ("/api", "/apis") else JSON
    return HttpResponse(200, document, shown)
