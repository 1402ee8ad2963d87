"""Nulls in built-in kinds: Go's types drop them. Custom resources keep them."""

from __future__ import annotations

from operator import is_
from typing import Any

from seatrial.cluster.discovery.schema import Schema
from seatrial.cluster.fields.shape import EXTRA, ITEMS, Shape, shape_of
from seatrial.model.resource import Body

_NOTHING: Body = {}


def without_nulls(body: Body, schema: Schema | None, known: Body = _NOTHING) -> Body:
    """The body as Go decodes it; the same object if it contains no null.

    Values shared with `known`, an object that was decoded before, are skipped.
    """
    if schema is None or not schema.defs:
        return body
    return _read_map(body, shape_of(schema), known)


def _read(value: Any, shape: Shape) -> Any:
    if type(value) is dict and shape.type:
        return _read_map(value, shape)
    if type(value) is list:
        items = shape.below[ITEMS]
        read = [_read(item, items) for item in value]
        return value if all(map(is_, read, value)) else read
    return value


def _read_map(value: Body, shape: Shape, known: Body = _NOTHING) -> Body:
    result = value
    for key, child in value.items():
        if child is not None and ((type(child) is not dict and type(child) is not list) or known.get(key) is child):
            continue
        declared = key in shape.declared
        there = shape.below[key if declared else EXTRA]
        read = _read(child, there)
        if read is child and child is not None:
            continue
        if result is value:
            result = dict(value)
        if read is not None:
            result[key] = read
        elif there.type == "string" and not declared:
            # A null in a mapping of strings becomes the empty string.
            result[key] = ""
        else:
            del result[key]
    return result
