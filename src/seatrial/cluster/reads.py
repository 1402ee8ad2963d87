"""Get and list, as the API server answers them. Changes nothing."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

import msgspec

from seatrial.cluster import conversion, selector
from seatrial.cluster.refusal import bad_request, gone, not_found
from seatrial.cluster.request import Reply, Request
from seatrial.cluster.sayings import as_events
from seatrial.cluster.watch import in_version
from seatrial.kinds.catalogue import ServedKind
from seatrial.resource import Body, Ref, dig

if TYPE_CHECKING:
    from seatrial.cluster.cluster import Cluster


def answer(cluster: Cluster, kind: ServedKind, request: Request) -> Reply:
    return Reply(200, get(cluster, kind, request) if request.verb == "get" else listing(cluster, kind, request))


def get(cluster: Cluster, kind: ServedKind, request: Request) -> Body:
    body = cluster.store.get(ref_for(kind, request))
    if body is None:
        raise not_found(kind.plural, kind.group, request.name)
    conversion.read(cluster, kind, ref_for(kind, request))
    if request.subresource == "scale":
        return scale_of(body)
    return in_version(body, kind)


def ref_for(kind: ServedKind, request: Request) -> Ref:
    return Ref(kind.kind, request.namespace if kind.namespaced else "", request.name, kind.group)


def scale_of(body: Body) -> Body:
    """The `scale` subresource of anything with replicas."""
    meta = body["metadata"]
    kept = {
        key: meta[key] for key in ("name", "namespace", "uid", "resourceVersion", "creationTimestamp") if key in meta
    }
    labels = dig(body, "spec", "selector", "matchLabels") or {}
    status = {"replicas": dig(body, "status", "replicas") or 0}
    if labels:
        status["selector"] = ",".join(f"{key}={value}" for key, value in sorted(labels.items()))
    spec = {"replicas": dig(body, "spec", "replicas") or 0}
    return {"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": kept, "spec": spec, "status": status}


def listing(cluster: Cluster, kind: ServedKind, request: Request) -> Body:
    """One page of a list; `continue` carries the version it was begun at and the last key that was sent."""
    version, after = _continued(cluster, request)
    labels = selector.label_test(request.label_selector)
    fields = selector.field_test(request.field_selector)
    found = [
        body
        for body in _all_of(cluster, kind, request.namespace if kind.namespaced else "")
        if labels(body) and fields(body) and (after is None or _key(body) > after)
    ]
    meta: Body = {"resourceVersion": version}
    if request.limit and len(found) > request.limit:
        meta["continue"] = _token(version, _key(found[request.limit - 1]))
        meta["remainingItemCount"] = len(found) - request.limit
        found = found[: request.limit]
    if cluster.is_custom(kind):
        for body in found:
            conversion.read(cluster, kind, cluster.ref_of(body))
    items = [in_version(body, kind) for body in found]
    return {"kind": kind.list_kind, "apiVersion": kind.api_version, "metadata": meta, "items": items}


def _all_of(cluster: Cluster, kind: ServedKind, namespace: str) -> list[Body]:
    stored = cluster.store.of_kind((kind.group, kind.kind), namespace)
    return stored + as_events(cluster.sayings, kind, namespace) if kind.kind == "Event" else stored


def _key(body: Body) -> list[str]:
    return [body["metadata"].get("namespace", ""), body["metadata"]["name"]]


def _token(version: str, after: list[str]) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode({"v": version, "after": after})).decode().rstrip("=")


def _continued(cluster: Cluster, request: Request) -> tuple[str, list[str] | None]:
    if not request.continue_token:
        return str(cluster.store.version), None
    padded = request.continue_token + "=" * (-len(request.continue_token) % 4)
    try:
        token = msgspec.json.decode(base64.urlsafe_b64decode(padded), type=dict[str, str | list[str]])
        version, after = str(token["v"]), list(token["after"])
        asked = int(version)
    except (ValueError, KeyError, msgspec.DecodeError) as wrong:
        raise bad_request("continue key is not valid: it does not appear to be a token of this server") from wrong
    if cluster.store.since(asked) is None:
        raise gone(
            "The provided continue parameter is too old to display a consistent list result. You can start a new "
            "list without the continue parameter, or use the continue token in this response to retrieve the "
            "remainder of the results. Continuing with the provided token results in an inconsistent list - objects "
            "that were created, modified, or deleted between the time the first chunk was returned and now may show "
            "up in the list."
        )
    return version, after
