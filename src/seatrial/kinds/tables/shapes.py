"""The shape of an object: whether each value has the type of its field. All that reads bodies may rely on it.

A value of another type makes the API server refuse the object. Its readers see the object without that value, and an
annotation keeps what is written, which is what the API server is sent. Fields without a known type may have any value.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from seatrial.kinds.tables.go_types import GoField, fields_of, kinds_in
from seatrial.model.resource import WRITTEN, Body, Path, annotations_of, group_of, with_metadata, written

NAMES: dict[type, str] = {
    str: "a string",
    bool: "a boolean",
    int: "a number",
    float: "a number",
    dict: "a map",
    list: "a list",
    type(None): "null",
}
EXPECTED = {'"': "a string", "#": "a number", ".": "a number", "?": "a boolean", "&": "a string", "*": "a list"}
_SCALARS = {'"': str, "?": bool, "&": str}
_OWN = {"Quantity": (str, int, float), "IntOrString": (str, int), "Time": (str,), "MicroTime": (str,)}
_FREE = "{%Any"
_TYPES = {'"': "string", "#": "integer", "?": "boolean", "&": "string"}
_OPEN: Body = {"x-kubernetes-preserve-unknown-fields": True}


class Misfit(Struct, frozen=True):
    """A value that does not have the type of its field."""

    path: Path
    value: Any
    expected: str
    """`a map`"""
    is_refused: bool = True
    """Whether the API server refuses it: some CRDs accept any value where the controller reads a map."""

    def __str__(self) -> str:
        field = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in self.path).removeprefix(".")
        return f"{field or 'it'} is {NAMES[type(self.value)]}, not {self.expected}"


class _Faults(Struct):
    found: list[Misfit]
    strict: bool = False
    """Whether a number or a boolean in place of a string counts: what reads a string also reads these."""


class _Shape(Struct, eq=False):
    sign: str
    item: _Shape | None = None
    fields: _Fields | dict[str, _Shape | None] = {}
    scalar: type | None = None
    own: tuple[type, ...] = ()


def shaped(body: Body) -> Body:
    """The object as all its readers see it: where each value fits, the body itself."""
    faults = _Faults([])
    fitted: Body = _struct(body, _shape_of(str(body.get("apiVersion")), str(body.get("kind"))), (), faults)
    if not faults.found:
        return body
    raw = msgspec.json.encode(body).decode()
    return with_metadata(fitted, annotations={**annotations_of(fitted), WRITTEN: raw})


def misfits(body: Body) -> list[Misfit]:
    """The values of an object that do not fit, in the order of the text; also what only lacks its quotes."""
    raw = written(body) or body
    faults = _Faults([], strict=True)
    _struct(raw, _shape_of(str(raw.get("apiVersion")), str(raw.get("kind"))), (), faults)
    return faults.found


def fitted(value: Any, struct: str) -> tuple[Body, list[Misfit]]:
    """What fits a struct of the tables, and the values that do not."""
    faults = _Faults([])
    return _fitted(value, _shape(f"={struct}"), (), faults) or {}, faults.found


def schema_of(group: str, kind: str) -> Body:
    """The known types of a custom kind as the schema of its CRD, which accepts all that has no known type."""
    name = kinds_in("custom_types.txt").get((f"{group}/*", kind))
    fields = fields_of(name) if name else (GoField("spec", _FREE, is_always_written=False),)
    typed = {field.name: _schema(field.type) for field in fields if field.name != "metadata"}
    return {"type": "object", **_OPEN, "properties": typed}


def _schema(type_: str, around: tuple[str, ...] = ()) -> Body:
    sign, of = type_[0], type_[1:]
    match sign:
        case ">":
            return _schema(of, around)
        case "*":
            return {"type": "array", "items": _schema(of, around), "nullable": True}
        case "{" if of != "%Any":
            return {"type": "object", "additionalProperties": _schema(of, around), "nullable": True}
        case "=" if of not in around:
            fields = {field.name: _schema(field.type, (*around, of)) for field in fields_of(of)}
            return {"type": "object", **_OPEN, "properties": fields, "nullable": True}
        case "{" | "=":
            return {"type": "object", **_OPEN, "nullable": True}
        case "~":
            return _OPEN
        case "%":
            return {"x-kubernetes-int-or-string": True, "nullable": True} if of == "IntOrString" else _OPEN
    return {"type": _TYPES[sign], "nullable": True}


def _struct(value: Body, shape: _Shape, path: Path, faults: _Faults) -> Body:
    fields = shape.fields
    changed: Body | None = None
    for key, child in value.items():
        there = fields[key]
        if there is None or child is None or type(child) is there.scalar:
            continue
        found = _fitted(child, there, (*path, key), faults)
        if found is not child:
            changed = dict(value) if changed is None else changed
            changed[key] = found
            if found is None:
                del changed[key]
    return value if changed is None else changed


def _fitted(value: Any, shape: _Shape, path: Path, faults: _Faults) -> Any:
    """The value, or the nearest one that fits; None if there is none."""
    match shape.sign, value:
        case "~", _:
            return _unrefused(value, shape, path, faults)
        case "=", dict():
            return _struct(value, shape, path, faults)
        case "{", dict():
            return _each(value, shape, path, faults)
        case "*", list():
            return _items(value, shape, path, faults)
        case "%", _ if not shape.own or isinstance(value, shape.own):
            return value
        case '"' | "?" | "&", _ if isinstance(value, shape.scalar or object):
            return value
        case "#" | ".", int() | float() if not isinstance(value, bool):
            return value
    unquoted = shape.sign == '"' and isinstance(value, int | float)
    if not unquoted or faults.strict:
        expected = "a string" if shape.own else EXPECTED.get(shape.sign, "a map")
        faults.found.append(Misfit(path, value, expected))
    return value if unquoted else None


def _unrefused(value: Any, shape: _Shape, path: Path, faults: _Faults) -> Any:
    below = _Faults([], strict=faults.strict)
    found = _fitted(value, shape.item or shape, path, below)
    faults.found += [replace(misfit, is_refused=False) for misfit in below.found]
    return found


def _each(value: Body, shape: _Shape, path: Path, faults: _Faults) -> Body:
    item = shape.item
    if item is None:
        return value
    found = {
        key: child if child is None or type(child) is item.scalar else _fitted(child, item, (*path, key), faults)
        for key, child in value.items()
    }
    if all(found[key] is child for key, child in value.items()):
        return value
    return {key: child for key, child in found.items() if child is not None or value[key] is None}


def _items(value: list[Any], shape: _Shape, path: Path, faults: _Faults) -> list[Any]:
    """Items keep their places: one that does not fit is empty."""
    item = shape.item
    if item is None:
        return value
    found = [
        child if type(child) is item.scalar else _item(child, item, (*path, index), faults)
        for index, child in enumerate(value)
    ]
    return value if all(one is child for one, child in zip(found, value, strict=True)) else found


def _item(value: Any, shape: _Shape, path: Path, faults: _Faults) -> Any:
    found = _fitted(value, shape, path, faults)
    sign = shape.item.sign if shape.sign == "~" and shape.item else shape.sign
    return {"=": {}, "{": {}, "*": []}.get(sign, "") if found is None and sign != "%" else found


@cache
def _shape_of(api_version: str, kind: str) -> _Shape:
    group = group_of(api_version)
    name = kinds_in("go_types.txt").get((api_version, kind)) or kinds_in("custom_types.txt").get((f"{group}/*", kind))
    shape = _Shape("=", fields=_Fields(name or _other_versions().get((group, kind), "")))
    shape.fields["metadata"] = _shape("=v1.ObjectMeta")
    for part in ("spec", "status"):
        if shape.fields[part] is None:
            shape.fields[part] = _shape(_FREE)
    return shape


@cache
def _other_versions() -> dict[tuple[str, str], str]:
    """By group and kind; also by the first group that kinds of apps, networking and policy had."""
    known = kinds_in("go_types.txt").items()
    first = {("extensions", kind): name for (_, kind), name in known}
    return {**first, **{(group_of(api_version), kind): name for (api_version, kind), name in known}}


@cache
def _shape(type_: str) -> _Shape:
    sign, of = type_[0], type_[1:]
    match sign:
        case ">":
            return _shape(of)
        case "=":
            return _Shape(sign, fields=_Fields(of))
        case "*" | "{" | "~":
            return _Shape(sign, item=_shape(of))
        case "%":
            return _Shape(sign, own=_OWN.get(of, ()))
    return _Shape(sign, scalar=_SCALARS.get(sign))


class _Fields(dict[str, _Shape | None]):
    """The shapes of a struct's fields, computed on demand: most are never used. None for a field of no known type."""

    __slots__ = ("types",)

    def __init__(self, struct: str) -> None:
        super().__init__()
        self.types = {field.name: field.type for field in fields_of(struct)} if struct else {}

    def __missing__(self, key: str) -> _Shape | None:
        found = self[key] = _shape(self.types[key]) if key in self.types else None
        return found
