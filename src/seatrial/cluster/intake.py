"""From what a client sent to an object that has its names. Stores nothing."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from seatrial.cluster.refusal import already_exists, bad_request, invalid
from seatrial.cluster.request import Request
from seatrial.kinds.catalogue import ServedKind
from seatrial.resource import Body, Ref, metadata

if TYPE_CHECKING:
    from seatrial.cluster.cluster import Cluster

NAME_MAX = 63 - 5
"""Of a generated name, what is left for the prefix."""
SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"


def object_of(kind: ServedKind, request: Request) -> Body:
    """The object in a request, its names filled in from the path, or refused where they disagree."""
    body = request.body
    if not isinstance(body, dict):
        raise bad_request(f"couldn't get version/kind; json parse error: the body is no object: {type(body).__name__}")
    if request.subresource == "scale":
        return body
    _refuse_another_kind(kind, body)
    meta = body.get("metadata")
    meta = dict(meta) if isinstance(meta, dict) else {}
    if kind.namespaced:
        if meta.get("namespace") not in (None, "", request.namespace):
            raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
        meta["namespace"] = request.namespace
    else:
        meta.pop("namespace", None)
    if request.name:
        if meta.get("name") not in (None, "", request.name):
            raise bad_request(
                f"the name of the object ({meta['name']}) does not match the name on the URL ({request.name})"
            )
        meta["name"] = request.name
    return {**body, "apiVersion": kind.api_version, "kind": kind.kind, "metadata": meta}


def _refuse_another_kind(kind: ServedKind, body: Body) -> None:
    version, name = body.get("apiVersion") or kind.api_version, body.get("kind") or kind.kind
    if (version, name) != (kind.api_version, kind.kind):
        short = str(version).rpartition("/")[2]
        raise bad_request(
            f'{name} in version "{short}" cannot be handled as a {kind.kind}: '
            f'no kind "{name}" is registered for version "{version}" in scheme "pkg/runtime/scheme.go:110"'
        )


def named(cluster: Cluster, kind: ServedKind, body: Body) -> Body:
    meta = metadata(body)
    if meta.get("name"):
        return body
    prefix = meta.get("generateName")
    if not prefix:
        words = "metadata.name: Required value: name or generateName is required"
        raise invalid(kind.kind, kind.group, "", [words])
    namespace = meta.get("namespace", "") if kind.namespaced else ""
    name = _generated(cluster, kind, namespace, str(prefix))
    return {**body, "metadata": {**meta, "name": name}}


def _generated(cluster: Cluster, kind: ServedKind, namespace: str, prefix: str) -> str:
    """The first free name; the letters depend on the prefix and on how often it was used, so runs repeat."""
    for count in range(1_000_000):
        digest = hashlib.md5(f"{namespace}/{prefix}{count}".encode(), usedforsecurity=False).digest()
        suffix = "".join(SUFFIX_LETTERS[byte % len(SUFFIX_LETTERS)] for byte in digest[:5])
        ref = Ref(kind.kind, namespace, prefix[:NAME_MAX] + suffix, kind.group)
        if not cluster.store.lived(ref):
            return ref.name
    raise already_exists(kind.plural, kind.group, prefix)
