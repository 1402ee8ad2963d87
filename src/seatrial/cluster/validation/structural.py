"""Custom resources by their structural schema: unknown fields pruned, nulls dropped if not applied, defaults set.

Follows apiextensions' `pkg/apiserver/schema`: pruning, defaulting, objectmeta. Validates no values.
"""

from __future__ import annotations

from typing import Any

from seatrial.cluster.discovery.schema import Schema
from seatrial.cluster.validation.decode import GoType, Reading, named_type, read
from seatrial.model.resource import Body

OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"

PRESERVES = "x-kubernetes-preserve-unknown-fields"
EMBEDDED = "x-kubernetes-embedded-resource"

_TYPED = ("apiVersion", "kind", "metadata")


def read_custom(body: Body, schema: Schema, kube_version: str, *, is_applied: bool = False) -> Reading:
    """A custom resource as it is stored. Unknown fields are reported, sorted.

    A null that is not allowed counts as not set, except in a server-side apply, where its validation fails.
    """
    meta = named_type(OBJECT_META, kube_version)
    unknown: list[str] = []
    wrong: list[str] = []
    shaped = _resource(body, schema.node, "", _Seen(meta, unknown, wrong, is_applied=is_applied))
    return Reading(shaped, tuple(sorted(unknown)), wrong[0] if wrong else "")


class _Seen:
    """What a walk has found so far."""

    __slots__ = ("is_applied", "meta", "unknown", "wrong")

    def __init__(self, meta: GoType, unknown: list[str], wrong: list[str], *, is_applied: bool) -> None:
        self.is_applied = is_applied
        self.meta = meta
        self.unknown = unknown
        self.wrong = wrong


def _resource(body: Body, node: Body, path: str, seen: _Seen) -> Body:
    """An object with its own kind and metadata: the root, or an embedded one."""
    own = {key: value for key, value in body.items() if key not in _TYPED}
    shaped = _mapping(own, node, path, seen)
    typed: Body = {key: body[key] for key in ("apiVersion", "kind") if key in body}
    if isinstance(body.get("metadata"), dict):
        found = read(body["metadata"], seen.meta)
        prefix = f"{path}.metadata." if path else "metadata."
        seen.unknown.extend(prefix + name for name in found.unknown)
        if found.wrong:
            seen.wrong.append(found.wrong)
        typed["metadata"] = found.body
    return {**typed, **shaped}


def _shaped(value: Any, node: Body, path: str, seen: _Seen) -> Any:
    match value:
        case dict() if node.get(EMBEDDED):
            return _resource(value, node, path, seen)
        case dict():
            return _mapping(value, node, path, seen)
        case list() if isinstance(node.get("items"), dict):
            items = node["items"]
            return [_shaped(item, items, f"{path}[{index}]", seen) for index, item in enumerate(value)]
    return value


def _mapping(value: Body, node: Body, path: str, seen: _Seen) -> Body:
    properties: Body = node.get("properties") or {}
    extra = node.get("additionalProperties")
    open_to_all = bool(node.get(PRESERVES)) or extra is True
    shaped: Body = {}
    for key, child in value.items():
        here = f"{path}.{key}" if path else key
        below = properties.get(key, extra if isinstance(extra, dict) else None)
        if below is None:
            if open_to_all:
                shaped[key] = child
            else:
                seen.unknown.append(here)
        elif child is not None or below.get("nullable") or (seen.is_applied and "default" not in below):
            shaped[key] = _shaped(child, below, here, seen)
    for key, below in properties.items():
        if key not in shaped and "default" in below:
            shaped[key] = _shaped(below["default"], below, f"{path}.{key}", seen)
    return shaped
