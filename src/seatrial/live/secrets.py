"""Secrets without their values: names of keys and the type, from a table and from metadata.

The API server sends `kubectl get`'s columns (type, number of keys) and metadata, whose managedFields name the keys.
"""

from __future__ import annotations

from typing import Any

from seatrial.kinds.tables.catalogue import ServedKind
from seatrial.kinds.workloads.kubelet import ANY_KEY
from seatrial.live.client import TABLE, Client, denial_of, path_of, without_last_applied
from seatrial.live.transport import LiveRequest, RefusedRequest
from seatrial.model.resource import Body, annotations_of, dig, listed, metadata

NO_VALUE = ""


def secret(client: Client, kind: ServedKind, namespace: str, name: str) -> Body | None:
    """A Secret with empty values; None if there is none."""
    request = LiveRequest("GET", path_of(kind, namespace, name), accept=TABLE, denial=denial_of("get", kind, namespace))
    try:
        table = client.transport.send(request).body
    except RefusedRequest as refused:
        if refused.code == 404:
            return None
        raise
    row: Body = next(iter(listed(table, "rows")), {})
    return from_row(row, [str(column.get("name")) for column in listed(table, "columnDefinitions")])


def from_row(row: Body, columns: list[str]) -> Body:
    """A Secret from a row of a table. With unknown keys, it counts as having every key."""
    cells = dict(zip(columns, listed(row, "cells"), strict=False))
    meta = without_last_applied(metadata(row.get("object") or {}))
    keys = keys_of(meta)
    body: Body = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": meta,
        "type": str(cells.get("Type") or "Opaque"),
        "data": dict.fromkeys(keys, NO_VALUE),
    }
    if _number(cells.get("Data")) == len(keys):
        return body
    return {**body, "metadata": {**meta, "annotations": {**annotations_of(body), ANY_KEY: "unknown"}}}


def keys_of(meta: Body) -> list[str]:
    """The keys of data that any field manager set."""
    found: set[str] = set()
    for entry in listed(meta, "managedFields"):
        for field in ("f:data", "f:stringData"):  # A server-side apply of stringData is recorded as such.
            fields = dig(entry, "fieldsV1", field)
            found.update(key[2:] for key in fields if key.startswith("f:")) if isinstance(fields, dict) else None
    return sorted(found)


def _number(cell: Any) -> int:
    return int(cell) if str(cell).isdigit() else -1
