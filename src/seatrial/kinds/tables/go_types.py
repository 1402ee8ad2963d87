"""Objects as Go programs rewrite them that read them into the types of k8s.io/api. Knows Kubernetes' own kinds only.

Such a program drops the fields that its types do not have, leaves out what is empty, and writes empty fields that
are not set: `strategy: {}`. Read from `FromUnstructured` and `ToUnstructured` of apimachinery 0.36,
pkg/runtime/converter.go.
"""

from __future__ import annotations

import binascii
from base64 import b64decode, b64encode
from collections.abc import Callable
from functools import cache
from pkgutil import get_data
from typing import Any

from msgspec import Struct

from seatrial.kinds.core.quantities import canonical, quantity_fault
from seatrial.model.resource import Body


class Unconvertible(ValueError):
    """A value that does not fit its Go type."""


class GoField(Struct, frozen=True):
    name: str
    type: str
    is_always_written: bool


def rewritten(body: Body) -> Body | None:
    """An object after a round trip through its Go type; None if client-go has none. Raises `Unconvertible`."""
    name = kinds_in("go_types.txt").get((str(body.get("apiVersion")), str(body.get("kind"))))
    return None if name is None else _struct(name, body)


@cache
def kinds_in(file: str) -> dict[tuple[str, str], str]:
    """The type of each kind."""
    return _tables(file)[0]


@cache
def fields_of(struct: str) -> tuple[GoField, ...]:
    """The fields of a struct, of Kubernetes or of a custom resource."""
    unparsed = _tables("go_types.txt")[1].get(struct) or _tables("custom_types.txt")[1][struct]
    return tuple(map(_field, unparsed.split()))


@cache
def _tables(file: str) -> tuple[dict[tuple[str, str], str], dict[str, str]]:
    """The type of each kind, and the fields of each struct, unparsed."""
    kinds: dict[tuple[str, str], str] = {}
    structs: dict[str, str] = {}
    for line in (get_data(__name__, file) or b"").decode().splitlines():
        first, _, rest = line.partition(" ")
        second, _, third = rest.partition(" ")
        if first == "#":
            continue
        if first == "v1" or "/" in first:
            kinds[first, second] = third
        else:
            structs[first] = rest
    return kinds, structs


def _field(cell: str) -> GoField:
    start = next(place for place, sign in enumerate(cell) if not sign.isalnum() and sign != "-")
    always = cell[start] == "!"
    return GoField(cell[:start], cell[start + always :], always)


def _struct(name: str, value: Any) -> Body:
    if not isinstance(value, dict):
        raise Unconvertible(f"cannot restore struct from: {value}")
    written: Body = {}
    for field in fields_of(name):
        given = value.get(field.name)
        converted = _zero(field.type) if given is None else _converted(field.type, given)
        if field.is_always_written or not _is_empty(field.type, converted):
            written[field.name] = converted
    return written


def _is_empty(type_: str, value: Any) -> bool:
    """What `omitempty` leaves out: no pointer that is set, and no struct."""
    return value is None if type_[0] in ">%=" else not value


def _zero(type_: str) -> Any:
    """What Go has in a field that nothing was read into."""
    match type_[0]:
        case "=":
            return _struct(type_[1:], {})
        case "%":
            return _ZERO[type_[1:]]
        case sign:
            return {'"': "", "#": 0, "?": False, ".": 0.0}.get(sign)


def _converted(type_: str, value: Any) -> Any:
    sign, of = type_[0], type_[1:]
    match sign:
        case "=":
            return _struct(of, value)
        case ">":
            return _converted(of, value)
        case "*" if isinstance(value, list):
            return [_element(of, one) for one in value]
        case "{" if isinstance(value, dict):
            return {key: _element(of, one) for key, one in value.items()}
        case "&" if isinstance(value, str):
            return _bytes(value)
        case "%":
            return _OWN[of](value)
        case '"' if isinstance(value, str):
            return value
        case "?" if isinstance(value, bool):
            return value
        case "#" if isinstance(value, (int, float)) and not isinstance(value, bool) and value == int(value):
            return int(value)
        case "." if isinstance(value, (int, float)) and not isinstance(value, bool):
            return float(value)
    raise Unconvertible(f"cannot convert {value}")


def _element(type_: str, value: Any) -> Any:
    return _zero(type_) if value is None else _converted(type_, value)


def _bytes(text: str) -> str:
    """Go ignores line breaks in base64, and does not write them."""
    try:
        return b64encode(b64decode(text.replace("\n", "").replace("\r", ""), validate=True)).decode()
    except binascii.Error as why:
        raise Unconvertible(str(why)) from why


def _quantity(value: Any) -> str:
    if (
        isinstance(value, bool)
        or not isinstance(value, (str, int, float))
        or (value != "" and quantity_fault(str(value)))
    ):
        raise Unconvertible(f"{value} is not a quantity")
    return canonical(value) if value != "" else "0"


def _int_or_string(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        raise Unconvertible(f"{value} is neither an integer nor a string")
    return value


def _as_given(value: Any) -> Any:
    return value


_ZERO: dict[str, Any] = {
    "Quantity": "0",
    "IntOrString": 0,
    "Time": None,
    "MicroTime": None,
    "RawExtension": None,
    "FieldsV1": None,
}
_OWN: dict[str, Callable[[Any], Any]] = {
    "Quantity": _quantity,
    "IntOrString": _int_or_string,
    "Time": _as_given,
    "MicroTime": _as_given,
    "RawExtension": _as_given,
    "FieldsV1": _as_given,
}
