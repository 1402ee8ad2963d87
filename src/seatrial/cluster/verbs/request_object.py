"""From a client's request body to a named object. Stores nothing."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import msgspec

from seatrial.cluster.refusal import already_exists, bad_request, invalid
from seatrial.cluster.request import Request
from seatrial.kinds.tables.catalogue import ServedKind
from seatrial.model.resource import Body, Ref, metadata, uid_of
from seatrial.text.gotext import quoted

if TYPE_CHECKING:
    from seatrial.cluster.cluster import Cluster

NAME_MAX = 63 - 5
"""The part of a generated name that is left for the prefix."""
SCHEME = "pkg/runtime/scheme.go:110"
"""The source location of the API server's scheme, as its errors show it."""
SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"


def object_of(kind: ServedKind, request: Request) -> Body:
    """The object in a request, with its names from the path; refused if they disagree."""
    body = request.body
    if not isinstance(body, dict):
        raise bad_request(f"couldn't get version/kind; json parse error: the body is no object: {type(body).__name__}")
    if request.subresource == "scale":
        return body
    _refuse_another_kind(kind, body, request)
    meta = body.get("metadata")
    meta = dict(meta) if isinstance(meta, dict) else {}
    _refuse_another_name(kind, meta, request)
    if kind.namespaced:
        meta["namespace"] = request.namespace
    else:
        meta.pop("namespace", None)
    if request.name:
        meta["name"] = request.name
    return {**body, "apiVersion": kind.api_version, "kind": kind.kind, "metadata": meta}


def as_sent(body: Body, request: Request) -> Body:
    """An applied object without a namespace that only the path names: field ownership ignores it."""
    if metadata(request.body).get("namespace"):
        return body
    return {**body, "metadata": {key: value for key, value in body["metadata"].items() if key != "namespace"}}


def refuse_another_object(kind: ServedKind, live: Body, body: Body, request: Request) -> None:
    """Refuse a patch that changes the identity of an object."""
    version, name = body.get("apiVersion"), body.get("kind")
    if (version, name) != (kind.api_version, kind.kind):
        shown = quoted(msgspec.json.encode(body).decode())
        message = f'no kind "{name}" is registered for version "{version}" in scheme "{SCHEME}"'
        raise invalid("", "", "", [f"patch: Invalid value: {shown}: {message}"])
    _refuse_another_name(kind, metadata(body), request)
    uid = metadata(body).get("uid")
    if uid not in (None, "", uid_of(live)):
        message = f'metadata.uid: Invalid value: "{uid}": field is immutable'
        raise invalid(kind.kind, kind.group, request.name, [message, message])


def _refuse_another_name(kind: ServedKind, meta: Body, request: Request) -> None:
    if kind.namespaced and meta.get("namespace") not in (None, "", request.namespace):
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    name = meta.get("name")
    if request.name and name not in (None, "", request.name):
        raise bad_request(f"the name of the object ({name}) does not match the name on the URL ({request.name})")
    if request.name and not name and request.patch_type != "apply":
        raise bad_request(
            f"the name of the object ({request.name} based on URL) was undeterminable: name must be provided"
        )


def _refuse_another_kind(kind: ServedKind, body: Body, request: Request) -> None:
    if request.patch_type == "apply" and (body.get("apiVersion"), body.get("kind")) != (kind.api_version, kind.kind):
        group, _, version = str(body.get("apiVersion") or "").rpartition("/")
        raise bad_request(f"invalid object type: {group}/{version}, Kind={body.get('kind') or ''}")
    version, name = body.get("apiVersion") or kind.api_version, body.get("kind") or kind.kind
    if (version, name) != (kind.api_version, kind.kind):
        short = str(version).rpartition("/")[2]
        raise bad_request(
            f'{name} in version "{short}" cannot be handled as a {kind.kind}: '
            f'no kind "{name}" is registered for version "{version}" in scheme "{SCHEME}"'
        )


def named(cluster: Cluster, kind: ServedKind, body: Body) -> Body:
    meta = metadata(body)
    if meta.get("name"):
        return body
    prefix = meta.get("generateName")
    if not prefix:
        message = "metadata.name: Required value: name or generateName is required"
        raise invalid(kind.kind, kind.group, "", [message])
    namespace = meta.get("namespace", "") if kind.namespaced else ""
    name = _generated(cluster, kind, namespace, str(prefix))
    return {**body, "metadata": {**meta, "name": name}}


def _generated(cluster: Cluster, kind: ServedKind, namespace: str, prefix: str) -> str:
    """The first unused name. The suffix depends on the prefix and how often it was used, so runs are reproducible."""
    for count in range(1_000_000):
        digest = hashlib.md5(f"{namespace}/{prefix}{count}".encode(), usedforsecurity=False).digest()
        suffix = "".join(SUFFIX_LETTERS[byte % len(SUFFIX_LETTERS)] for byte in digest[:5])
        ref = Ref(kind.kind, namespace, prefix[:NAME_MAX] + suffix, kind.group)
        if not cluster.store.existed(ref):
            return ref.name
    raise already_exists(kind.plural, kind.group, prefix)
