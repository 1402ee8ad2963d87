"""Get and list. Changes nothing."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

import msgspec

from seatrial.cluster.events import as_events
from seatrial.cluster.refusal import Refused, bad_request, gone, not_found
from seatrial.cluster.request import Reply, Request
from seatrial.cluster.verbs import conversion
from seatrial.cluster.verbs.fieldselector import field_test
from seatrial.cluster.verbs.labelselector import label_test
from seatrial.cluster.verbs.scale import paths_of, refuse_without_replicas, scale_of
from seatrial.cluster.watch import in_version
from seatrial.kinds.tables.catalogue import ServedKind
from seatrial.model.resource import Body, Ref
from seatrial.text.gotext import quoted

if TYPE_CHECKING:
    from seatrial.cluster.cluster import Cluster

TOO_OLD = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)


class ContinueToken(msgspec.Struct, frozen=True):
    """Where a list continues."""

    version: int
    after: list[str]
    """Namespace and name of the last object sent."""


def answer(cluster: Cluster, kind: ServedKind, request: Request) -> Reply:
    return Reply(200, get(cluster, kind, request) if request.verb == "get" else listing(cluster, kind, request))


def get(cluster: Cluster, kind: ServedKind, request: Request) -> Body:
    if version_text := request.resource_version:
        _refuse_future(cluster, _version(version_text, Refused(500, "", unreadable(version_text))))
    body = cluster.store.get(ref_for(kind, request))
    if body is None:
        raise not_found(kind.plural, kind.group, request.name)
    conversion.read(cluster, kind, ref_for(kind, request))
    if request.subresource == "scale":
        paths = paths_of(cluster, kind)
        refuse_without_replicas(body, paths)
        return scale_of(body, paths)
    return in_version(body, kind)


def ref_for(kind: ServedKind, request: Request) -> Ref:
    return Ref(kind.kind, request.namespace if kind.namespaced else "", request.name, kind.group)


def listing(cluster: Cluster, kind: ServedKind, request: Request) -> Body:
    """One page of a list. `continue` contains the list's version and the last key sent."""
    version, after = _requested(cluster, request)
    labels, fields = label_test(request.label_selector), field_test(request.field_selector, kind)
    namespace = request.namespace if kind.namespaced else ""
    bodies = _all_of(cluster, kind, namespace, version)
    found = [body for body in bodies if (after is None or _key(body) > after) and labels(body) and fields(body)]
    meta: Body = {"resourceVersion": str(version)}
    if request.limit and len(found) > request.limit:
        meta["continue"] = _token(version, _key(found[request.limit - 1]))
        if not request.label_selector and not request.field_selector:
            meta["remainingItemCount"] = len(found) - request.limit
        found = found[: request.limit]
    if cluster.is_custom(kind):
        for body in found:
            conversion.read(cluster, kind, cluster.ref_of(body))
    items = [in_version(body, kind) for body in found]
    return {"kind": kind.list_kind, "apiVersion": kind.api_version, "metadata": meta, "items": items}


def _all_of(cluster: Cluster, kind: ServedKind, namespace: str, version: int) -> list[Body]:
    stored = cluster.store.of_kind_at((kind.group, kind.kind), namespace, version)
    return stored + as_events(cluster.emitted, kind, namespace) if kind.kind == "Event" else stored


def unreadable(version: str) -> str:
    shown = quoted(version)
    return f"resourceVersion: Invalid value: {shown}: strconv.ParseUint: parsing {shown}: invalid syntax"


def _requested(cluster: Cluster, request: Request) -> tuple[int, list[str] | None]:
    """The version to list, and the key after which the page begins."""
    version_text = request.resource_version
    if request.continue_token:
        if version_text and version_text != "0":
            raise bad_request("specifying resource version is not allowed when using continue")
        return _continued(cluster, request.continue_token)
    if not version_text:
        return cluster.store.version, None
    version = _version(version_text, bad_request(f"invalid resource version: {unreadable(version_text)}"))
    _refuse_future(cluster, version)
    if request.resource_version_match != "Exact":
        return cluster.store.version, None
    if cluster.store.since(version) is None:
        raise gone(f"The resourceVersion for the provided list is too old: {version}")
    return version, None


def _version(text: str, otherwise: Refused) -> int:
    if not (text.isascii() and text.isdigit()):
        raise otherwise
    return int(text[:20])


def _refuse_future(cluster: Cluster, version: int) -> None:
    if version > cluster.store.version:
        cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
        message = f"Timeout: Too large resource version: {version}, current: {cluster.store.version}"
        raise Refused(504, "Timeout", message, {"causes": [cause], "retryAfterSeconds": 1})


def _key(body: Body) -> list[str]:
    return [body["metadata"].get("namespace", ""), body["metadata"]["name"]]


def _token(version: int, after: list[str]) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(ContinueToken(version, after))).decode().rstrip("=")


def _continued(cluster: Cluster, text: str) -> tuple[int, list[str]]:
    try:
        found = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        token = msgspec.json.decode(found, type=ContinueToken)
    except (ValueError, msgspec.DecodeError) as error:
        message = "invalid continue token: continue key is not valid: illegal base64 data at input byte 0"
        raise bad_request(message) from error
    if cluster.store.since(token.version) is None or token.version > cluster.store.version:
        raise gone(TOO_OLD)
    return token.version, token.after
