"""Responses as tables, as `kubectl get` requests them. The current time is an argument; changes no object."""

from __future__ import annotations

from typing import Any

import msgspec

from seatrial.cluster.tables import access, network, nodes, pods, storage, workloads
from seatrial.cluster.tables.age import since
from seatrial.cluster.tables.column import AGE, CREATED, NAME, Cell, Column, Columns
from seatrial.cluster.tables.partial import as_partial
from seatrial.kinds.core.jsonpath import find
from seatrial.kinds.tables.catalogue import CATALOGUE, ServedKind
from seatrial.model.resource import Body

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
"""The media type of a table."""

COLUMNS: Columns = {
    **access.COLUMNS,
    **network.COLUMNS,
    **nodes.COLUMNS,
    **pods.COLUMNS,
    **storage.COLUMNS,
    **workloads.COLUMNS,
}
DEFAULT = (NAME, CREATED)
"""For built-in kinds without columns of their own, such as CRDs."""


def wants_table(accept: str) -> bool:
    return "as=Table" in accept and "v=v1;g=meta.k8s.io" in accept


def as_table(kind: ServedKind, response: Body, now: str, printed: list[Body] | None = None, include: str = "") -> Body:
    """A list or a single object as a table.

    `printed` are the additionalPrinterColumns of a custom kind's version. `include` selects what is sent of each
    object: Metadata (the default), Object or None.
    """
    columns = _columns(kind, printed)
    items = response.get("items")
    bodies = [response] if items is None else items
    meta = response["metadata"] if items is not None else {"resourceVersion": _version(response)}
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": meta,
        "columnDefinitions": [_definition(column) for column in columns],
        "rows": [_row(columns, body, now, include) for body in bodies],
    }


def _version(body: Body) -> str:
    return str((body.get("metadata") or {}).get("resourceVersion") or "")


def _columns(kind: ServedKind, printed: list[Body] | None) -> tuple[Column, ...]:
    if (kind.group, kind.kind) in CATALOGUE:
        return COLUMNS.get((kind.group, kind.kind), DEFAULT)
    if not printed:
        return NAME, AGE
    return NAME, *(_printed(column) for column in printed)


def _printed(column: Body) -> Column:
    return Column(
        str(column.get("name") or ""),
        _cell(str(column.get("jsonPath") or ""), str(column.get("type") or "string")),
        str(column.get("type") or "string"),
        str(column.get("format") or ""),
        bool(column.get("priority")),
    )


def _cell(path: str, kind: str) -> Cell:
    def cell(body: Body, now: str) -> Any:
        found = find(path, body)
        if not found or found[0] is None:
            return None
        return _shown(found[0], kind, now)

    return cell


def _shown(value: Any, kind: str, now: str) -> Any:
    match kind, value:
        case "date", str():
            return since(value, now)
        case "string", bool():
            return "true" if value else "false"
        case "string", dict() | list() | int() | float():
            return msgspec.json.encode(value, order="sorted").decode()
        case "integer", float():
            return int(value)
    return value


def _definition(column: Column) -> Body:
    return {
        "name": column.name,
        "type": column.type,
        "format": column.format,
        "description": column.name,
        "priority": int(column.wide),
    }


def _row(columns: tuple[Column, ...], body: Body, now: str, include: str) -> Body:
    cells = [column.cell(body, now) for column in columns]
    match include:
        case "None":
            return {"cells": cells}
        case "Object":
            return {"cells": cells, "object": body}
    return {"cells": cells, "object": as_partial(body)}
