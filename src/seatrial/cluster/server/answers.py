"""Everything a GET of the API may be answered with beside objects: discovery, OpenAPI, health, tables. No sockets."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from seatrial.cluster.cluster import Cluster
from seatrial.cluster.discovery.served import AGGREGATED
from seatrial.cluster.refusal import Refused, method_not_allowed, unknown_resource
from seatrial.cluster.request import Request
from seatrial.cluster.server import routes
from seatrial.cluster.server.options import Query
from seatrial.cluster.tables import table
from seatrial.kinds.access.authorizer import ADMIN, User
from seatrial.model.resource import Body

JSON = "application/json"
OPENAPI_V2 = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
HEALTH = ("/healthz", "/livez", "/readyz")


class Answer(Struct, frozen=True):
    code: int
    body: bytes
    content_type: str = JSON
    warnings: tuple[str, ...] = ()


class Asked(Struct, frozen=True):
    """One request as it came over the wire, and who sent it."""

    method: str
    path: str
    query: str = ""
    content_type: str = ""
    accept: str = ""
    body: bytes = b""
    actor: str = ""
    agent: str = ""
    user: User = ADMIN


def reply_to(cluster: Cluster, asked: Asked) -> Answer:
    """The reply to one request that is no watch."""
    try:
        return _answer(cluster, asked)
    except Refused as refused:
        return Answer(refused.code, msgspec.json.encode(refused.status()))


def _answer(cluster: Cluster, asked: Asked) -> Answer:
    if (beside := _beside(cluster, asked.path, asked.accept)) is not None:
        if asked.method not in ("GET", "HEAD"):
            raise method_not_allowed()
        return beside
    query = Query(asked.query)
    found = routes.to_request(asked.method, asked.path, query, asked.content_type, asked.body, asked.actor)
    request = msgspec.structs.replace(found, user=asked.user)
    if request.subresource == "log":
        return _log(cluster, request)
    if not request.field_manager and request.patch_type != "apply":
        request = msgspec.structs.replace(request, field_manager=asked.agent)
    reply = cluster.request(request)
    wants_table = request.verb in ("get", "list") and table.wants_table(asked.accept) and not request.subresource
    if reply.code == 200 and wants_table:
        return Answer(200, msgspec.json.encode(_table(cluster, request, reply.body, query)), table.TABLE)
    return Answer(reply.code, msgspec.json.encode(reply.body), warnings=reply.warnings)


def _log(cluster: Cluster, request: Request) -> Answer:
    """Containers say nothing here; but there must be a pod that says it."""
    reply = cluster.request(request)
    if reply.code != 200:
        return Answer(reply.code, msgspec.json.encode(reply.body))
    return Answer(200, b"", "text/plain")


def _table(cluster: Cluster, request: Request, body: Body, query: Query) -> Body:
    kind = cluster.discovery.find(request.group, request.version, request.plural)
    assert kind is not None  # It was found to answer the request.
    return table.as_table(kind, body, cluster.store.now(), cluster.printer_columns(kind), query.get("includeObject"))


def _beside(cluster: Cluster, path: str, accept: str) -> Answer | None:
    """What is no object: None where the path is one of a resource."""
    if path.startswith(HEALTH):
        return Answer(200, b"ok", "text/plain")
    if path == "/openapi/v2":
        # Helm and kubectl ask for it when they meet a kind that is not served. An empty document knows no kind, which
        # is the answer: they then complain of the kind and not of the document.
        return Answer(200, b"", OPENAPI_V2)
    if path.startswith("/openapi/"):
        document = cluster.openapi.document(path)
        if document is None:
            raise unknown_resource()
        return Answer(200, document)
    if path.count("/") > 3:
        return None
    aggregated = "as=APIGroupDiscoveryList" in accept
    document = cluster.discovery.document(path, aggregated=aggregated)
    if document is None:
        return None
    shown = AGGREGATED if aggregated and path.rstrip("/") in ("/api", "/apis") else JSON
    return Answer(200, document, shown)
