"""Decoding of a body into the API server's Go types: unknown fields, values of the wrong type. Knows no custom kinds.

The errors are those of Go's JSON decoder, and of apimachinery's unstructured converter, which reads strategic patches
and applied objects. Valid bodies are decoded fast; errors are searched only if something does not fit.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Iterable
from functools import cache, lru_cache
from typing import Any, Literal

from msgspec import Struct

from seatrial.cluster.discovery.schema import definition_name, definitions
from seatrial.kinds.core.quantities import quantity_fault
from seatrial.kinds.tables.catalogue import ServedKind
from seatrial.model import lazy_re
from seatrial.model.resource import Body
from seatrial.text.gotext import plain

Form = Literal[
    "struct",
    "map",
    "slice",
    "string",
    "int32",
    "int64",
    "float64",
    "bool",
    "bytes",
    "quantity",
    "intstr",
    "time",
    "any",
]

# Definitions with their own decoder.
_OWN_FORMS: dict[str, Form] = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": "quantity",
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": "intstr",
    "io.k8s.apimachinery.pkg.apis.meta.v1.Time": "time",
    "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime": "time",
}

_FITTING: dict[Form, type] = {"string": str, "bool": bool}

_LIMITS = {"int32": 2**31, "int64": 2**63, "intstr": 2**31}

_JSON_NAMES = {str: "string", int: "number", float: "number", bool: "bool", dict: "object", list: "array"}
_GO_KINDS = {str: "string", int: "int64", float: "float64", bool: "bool", dict: "map", list: "slice"}

# What Go makes of a null in a list or a map. A null field counts as not set.
_ZERO: dict[Form, Any] = {
    "struct": {},
    "map": {},
    "slice": [],
    "string": "",
    "bool": False,
    "bytes": "",
    "quantity": "0",
    **dict.fromkeys(("int32", "int64", "float64", "intstr"), 0),
}

_UNKNOWN_MAX = 100
"""Where the strict decoder stops counting."""

# Go's layout of a time, part by part.
_TIME_PARTS = tuple(
    (name, lazy_re.compile(pattern))
    for name, pattern in (
        ("2006", "[0-9]{4}"),
        ("-", "-"),
        ("01", "[0-9]{2}"),
        ("-", "-"),
        ("02", "[0-9]{2}"),
        ("T", "T"),
        ("15", "[0-9]{2}"),
        (":", ":"),
        ("04", "[0-9]{2}"),
        (":", ":"),
        ("05", r"[0-9]{2}([.,][0-9]+)?"),
        ("Z07:00", "Z|[-+][0-9]{2}:[0-9]{2}"),
    )
)


class GoType(Struct, eq=False):
    """One Go type, as far as JSON is decoded into it."""

    form: Form
    name: str
    """As errors name it: `v1.PodSpec`, `[]string`."""
    fields: Fields
    fitting: type | None = None
    """The one Python type of which every value fits, if there is one."""
    required: frozenset[str] = frozenset()
    """In a struct, the fields that are written even if empty."""

    def item(self) -> GoType:
        """The type of every value of a map or slice."""
        found = self.fields[""]
        assert found is not None
        return found


class Fields(dict[str, "GoType | None"]):
    """The types of a struct's fields, computed on demand; None for a field that the struct does not have.

    In a map or slice all are the same, under the empty name.
    """

    __slots__ = ("kube_version", "nodes")

    def __init__(self, nodes: Body, kube_version: str) -> None:
        super().__init__()
        self.nodes = nodes
        self.kube_version = kube_version

    def __missing__(self, key: str) -> GoType | None:
        node = self.nodes.get(key)
        if node is None:
            return None
        found = self[key] = _type(node, self.kube_version)
        return found


class Reading(Struct, frozen=True):
    """The result of decoding a body."""

    body: Any
    """Without nulls, empty fields and unknown fields."""
    unknown: tuple[str, ...] = ()
    """The paths of unknown fields, in the order of the text."""
    wrong: str = ""
    """The JSON decoder's error for the first value that could not be decoded."""
    unconvertible: str = ""
    """The unstructured converter's error for the same value."""


@cache
def go_type(kube_version: str, kind: ServedKind) -> GoType | None:
    """The type that bodies of a built-in kind are decoded into."""
    name = definition_name(kube_version, kind.group, kind.version, kind.kind)
    return None if name is None else named_type(name, kube_version)


def read(body: Any, type_: GoType, known: Body | None = None) -> Reading:
    """Decode a body into its type. Values shared with `known`, which was decoded before, are skipped."""
    if _fits(body if known is None else _unread(body, known), type_):
        return Reading(body)
    faults = _Faults([], [])
    kept = _walked(body, type_, _Path("", "", ""), faults)
    wrong, unconvertible = faults.wrong[0] if faults.wrong else ("", "")
    return Reading(kept, tuple(faults.unknown[:_UNKNOWN_MAX]), wrong, unconvertible)


def _unread(body: Body, known: Body) -> Body:
    """The fields, and metadata fields, that are not identical to those of `known`. The server writes managedFields."""
    rest = {key: value for key, value in body.items() if known.get(key) is not value}
    if "metadata" in rest:
        before = known.get("metadata") or {}
        meta = body["metadata"].items()
        rest["metadata"] = {k: v for k, v in meta if before.get(k) is not v and k != "managedFields"}
    return rest


@cache
def named_type(name: str, kube_version: str) -> GoType:
    form = _OWN_FORMS.get(name)
    if form is not None:
        return GoType(form, {"intstr": "int32"}.get(form, "string"), Fields({}, kube_version))
    found = _type(definitions(kube_version).get(name, {}), kube_version)
    package, _, last = name.rpartition(".")
    return GoType(found.form, f"{package.rpartition('.')[2]}.{last}", found.fields, found.fitting, found.required)


def _type(node: Body, kube_version: str) -> GoType:
    pointer = node.get("$ref")
    if pointer is not None:
        return named_type(str(pointer).rpartition("/")[2], kube_version)
    declared = node.get("type")
    every = node.get("additionalProperties") or node.get("items")
    form: Form = "any"
    name = "interface {}"
    nodes: Body = {}
    match declared[0] if isinstance(declared, list) else declared:
        case "object" if "properties" in node:
            form, nodes = "struct", node["properties"]
        case "object" if isinstance(every, dict):
            form, name, nodes = "map", f"map[string]{_type(every, kube_version).name}", {"": every}
        case "array" if isinstance(every, dict):
            form, name, nodes = "slice", f"[]{_type(every, kube_version).name}", {"": every}
        case "integer":
            form = name = "int64" if node.get("format") == "int64" else "int32"
        case "number":
            form = name = "float64"
        case "boolean":
            form = name = "bool"
        case "string":
            form, name = ("bytes", "[]uint8") if node.get("format") == "byte" else ("string", "string")
    required = frozenset(node.get("required") or ()) if form == "struct" else frozenset()
    return GoType(form, name, Fields(nodes, kube_version), _FITTING.get(form), required)


def _fits(value: Any, type_: GoType) -> bool:
    """Whether a value can be used as it is: nothing unknown, no nulls, nothing that is omitted if empty."""
    match type_.form:
        case "struct":
            if type(value) is not dict:
                return False
            fields = type_.fields
            for key, child in value.items():
                there = fields[key]
                if there is None:
                    return False
                if type(child) is there.fitting:
                    continue
                if _is_left_out(child, key, there, type_) or not _fits(child, there):
                    return False
            return True
        case "map":
            return type(value) is dict and _all_fit(value.values(), type_)
        case "slice":
            return type(value) is list and _all_fit(value, type_)
        case "any":
            return True
        case _:
            return value is not None and not _scalar_fault(value, type_)


def _is_left_out(value: Any, key: str, there: GoType, struct: GoType) -> bool:
    """Whether Go omits a field: maps and lists are `omitempty`, unless they are required."""
    return not value and there.form in ("map", "slice") and key not in struct.required


def _all_fit(values: Iterable[Any], type_: GoType) -> bool:
    item = type_.item()
    fitting = item.fitting
    for value in values:  # noqa: SIM110, a generator would cost more than the check itself
        if type(value) is not fitting and not _fits(value, item):
            return False
    return True


class _Path(Struct, frozen=True):
    """The current path, for the strict decoder (`ports[0].name`) and for Go's own (`Container.ports.name`)."""

    path: str
    trail: str
    struct: str

    def field(self, key: str, type_: GoType) -> _Path:
        path, trail = (f"{there}.{key}" if there else key for there in (self.path, self.trail))
        return _Path(path, trail, type_.name.rpartition(".")[2])


class _Faults(Struct):
    unknown: list[str]
    wrong: list[tuple[str, str]]


def _walked(value: Any, type_: GoType, place: _Path, faults: _Faults) -> Any:
    """The value without unknown fields. Problems are recorded."""
    match value, type_.form:
        case dict(), "struct":
            return _struct(value, type_, place, faults)
        case dict(), "map":
            item = type_.item()
            return {
                key: _walked(child, item, _Path(f"{place.path}.{key}", place.trail, place.struct), faults)
                for key, child in value.items()
            }
        case list(), "slice":
            item = type_.item()
            return [
                _walked(child, item, _Path(f"{place.path}[{index}]", place.trail, place.struct), faults)
                for index, child in enumerate(value)
            ]
        case None, _:
            return _ZERO.get(type_.form)
    if fault := _fault(value, type_, place):
        faults.wrong.append(fault)
    return value


def _struct(value: Body, type_: GoType, place: _Path, faults: _Faults) -> Body:
    kept = {}
    for key, child in value.items():
        there = type_.fields[key]
        below = place.field(key, type_)
        if there is None:
            faults.unknown.append(below.path)
        elif there.form == "any" or (child is not None and not _is_left_out(child, key, there, type_)):
            kept[key] = _walked(child, there, below, faults)
    return kept


def _fault(value: Any, type_: GoType, place: _Path) -> tuple[str, str] | None:
    """The errors of both decoders for a value of the wrong type."""
    match type_.form:
        case "any":
            return None
        case "struct":
            return _mismatch(value, type_, place), f"cannot restore struct from: {_GO_KINDS[type(value)]}"
        case "map" | "slice":
            return _mismatch(value, type_, place), f"cannot restore {type_.form} from {_GO_KINDS[type(value)]}"
    error = _scalar_fault(value, type_)
    if not error:
        return None
    if error == _MISMATCH:
        return _mismatch(value, type_, place), _unconvertible(value, type_)
    return error, f"error decoding from json: {error}" if type_.form == "bytes" else error


_MISMATCH = "mismatch"


def _scalar_fault(value: Any, type_: GoType) -> str:
    """Why a value is not such a scalar: a specific error, or a type mismatch."""
    match type_.form, value:
        case "string", str():
            return ""
        case "bool", bool():
            return ""
        case _, bool() if type_.form != "quantity":
            return _MISMATCH
        case "int32" | "int64", int():
            return "" if -_LIMITS[type_.form] <= value < _LIMITS[type_.form] else _MISMATCH
        case "float64", int() | float():
            return ""
        case "intstr", str():
            return ""
        case "intstr", int():
            return "" if -_LIMITS["intstr"] <= value < _LIMITS["intstr"] else _MISMATCH
        case "quantity", _:
            return quantity_fault(value if isinstance(value, str) else plain(value))
        case "time", str():
            return _time_fault(value)
        case "bytes", str():
            return _base64_fault(value)
    return _MISMATCH


def _mismatch(value: Any, type_: GoType, place: _Path) -> str:
    shown = _JSON_NAMES[type(value)]
    if shown == "number" and type_.form in _LIMITS:
        shown = f"number {plain(value)}"
    into = f"Go struct field {place.struct}.{place.trail}" if place.trail else "Go value"
    return f"json: cannot unmarshal {shown} into {into} of type {type_.name}"


def _unconvertible(value: Any, type_: GoType) -> str:
    if type_.form in ("intstr", "time"):
        return f"json: cannot unmarshal {_JSON_NAMES[type(value)]} into Go value of type {type_.name}"
    if type(value) is int and type_.form == "string":
        return "cannot convert int64 to string"
    if type(value) is float and type_.form in _LIMITS:
        return f"cannot convert float64 to {type_.form}"
    return f"unrecognized type: {'slice' if type_.form == 'bytes' else type_.form}"


@lru_cache(maxsize=1024)
def _time_fault(text: str) -> str:
    if not text:
        return ""
    at = 0
    for name, pattern in _TIME_PARTS:
        found = pattern.match(text, at)
        if found is None:
            return f'parsing time "{text}" as "2006-01-02T15:04:05Z07:00": cannot parse "{text[at:]}" as "{name}"'
        at = found.end()
    return "" if at == len(text) else f'parsing time "{text}": extra text: "{text[at:]}"'


def _base64_fault(text: str) -> str:
    data = text.replace("\r", "").replace("\n", "") if "\n" in text else text
    try:
        binascii.a2b_base64(data, strict_mode=True)
    except (binascii.Error, ValueError):
        bad = re.search("[^A-Za-z0-9+/]", data.rstrip("="))
        return f"illegal base64 data at input byte {bad.start() if bad else len(data) // 4 * 4}"
    return ""
