"""Reading and writing snapshots of real clusters. A file may come from anyone: it is data within limits, never code."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from seatrial.model.errors import CannotContinue
from seatrial.model.resource import Body, listed, metadata
from seatrial.model.snapshot import API_VERSION, KIND, Snapshot
from seatrial.sources.files import read_bytes, shown

BYTES_MAX = 512 * 1024 * 1024
OBJECTS_MAX = 100_000
NESTING_MAX = 100
DOING = "read the snapshot"
HEAD = 200
"""Characters of a file that say whether it is a snapshot."""


def is_snapshot(path: str) -> bool:
    """Whether a file begins as `write` begins it."""
    try:
        head = read_bytes(path, DOING, BYTES_MAX)[:HEAD]
    except CannotContinue:
        return False
    return f'"kind": "{KIND}"'.encode() in head and API_VERSION.encode() in head


def read_snapshot(path: str) -> Snapshot:
    """A snapshot that `seatrial snapshot` wrote. What is not one is refused in a sentence."""
    doing = f"{shown(path)}: {DOING}"
    try:
        data: Any = json.loads(read_bytes(path, DOING, BYTES_MAX))
    except (ValueError, RecursionError) as error:
        raise CannotContinue(f"{doing}: not JSON: {error}") from None
    if not isinstance(data, dict) or (data.get("apiVersion"), data.get("kind")) != (API_VERSION, KIND):
        raise CannotContinue(f"{doing}: not a snapshot; `seatrial snapshot` writes one")
    try:
        snapshot = msgspec.convert(data, Snapshot)
    except msgspec.ValidationError as error:
        raise CannotContinue(f"{doing}: {error}") from None
    if len(snapshot.objects) > OBJECTS_MAX:
        raise CannotContinue(f"{doing}: more than {OBJECTS_MAX} objects")
    for index, body in enumerate(snapshot.objects):
        if problem := _problem(body):
            raise CannotContinue(f"{doing}: objects[{index}]: {problem}")
    return snapshot


def write(snapshot: Snapshot) -> str:
    """A snapshot as JSON, with a line for each object, so that two of them can be compared."""
    data = msgspec.to_builtins(snapshot)
    head = {"apiVersion": API_VERSION, "kind": KIND, **data}
    return "{\n" + ",\n".join(f'"{key}": {_field(value)}' for key, value in head.items()) + "\n}\n"


def _field(value: Any) -> str:
    if not isinstance(value, list | tuple) or not value:
        return json.dumps(value)
    return "[\n" + ",\n".join(json.dumps(one, sort_keys=True) for one in value) + "\n]"


def _problem(body: Body) -> str:
    """Why something is no Kubernetes object, as far as the cluster relies on it."""
    meta = metadata(body)
    texts = {
        "apiVersion": body.get("apiVersion"),
        "kind": body.get("kind"),
        "metadata.name": meta.get("name"),
        "metadata.namespace": meta.get("namespace", ""),
        "metadata.uid": meta.get("uid", ""),
    }
    for field, value in texts.items():
        if not isinstance(value, str) or (not value and field in ("apiVersion", "kind", "metadata.name")):
            return f"{field} is not a name"
    for field in ("labels", "annotations"):
        pairs = meta.get(field) or {}
        if not isinstance(pairs, dict) or not all(isinstance(value, str) for value in pairs.values()):
            return f"metadata.{field} is not a mapping of texts"
    if not all(isinstance(owner, dict) for owner in listed(meta, "ownerReferences")):
        return "metadata.ownerReferences is not a list of mappings"
    return "" if _depth_is_fine(body) else f"nested more than {NESTING_MAX} levels deep"


def _depth_is_fine(value: Any) -> bool:
    level = [value]
    for _ in range(NESTING_MAX):
        level = [
            child
            for one in level
            for child in (one.values() if isinstance(one, dict) else one if isinstance(one, list) else ())
        ]
        if not level:
            return True
    return False
