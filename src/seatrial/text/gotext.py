"""Values as Go's standard library prints them, for errors that quote one. Knows nothing of Kubernetes."""

from __future__ import annotations

import json
from typing import Any

TYPES = {
    dict: "map[string]interface {}",
    list: "[]interface {}",
    str: "string",
    int: "int64",
    float: "float64",
    bool: "bool",
    type(None): "<nil>",
}

JSON_NAMES = {dict: "object", list: "array", str: "string", int: "number", float: "number", bool: "bool"}


def type_name(value: Any) -> str:
    """As `%T` prints it."""
    return TYPES[type(value)]


def plain(value: Any) -> str:
    """As `%v` prints it."""
    match value:
        case None:
            return "<nil>"
        case bool():
            return "true" if value else "false"
        case dict():
            return "map[" + " ".join(f"{key}:{plain(value[key])}" for key in sorted(value)) + "]"
        case list():
            return "[" + " ".join(map(plain, value)) + "]"
        case float():
            return _number(value)
        case _:
            return str(value)


def syntax(value: Any) -> str:
    """As `%#v` prints it: Go source."""
    match value:
        case None:
            return "interface {}(nil)"
        case str():
            return quoted(value)
        case dict():
            inner = ", ".join(f"{quoted(key)}:{syntax(value[key])}" for key in sorted(value))
            return TYPES[dict] + "{" + inner + "}"
        case list():
            return TYPES[list] + "{" + ", ".join(map(syntax, value)) + "}"
        case _:
            return plain(value)


def quoted(text: str) -> str:
    """As `%q` prints it."""
    return json.dumps(text, ensure_ascii=False)


def cannot_decode(value: Any, expected: str) -> str:
    """The error of encoding/json for another type of value."""
    return f"json: cannot unmarshal {JSON_NAMES.get(type(value), 'null')} into Go value of type {expected}"


def _number(value: float) -> str:
    """Shortest form; an exponent only from 1e21 on or below 1e-4."""
    if value.is_integer() and abs(value) < 1e21:
        return str(int(value))
    return repr(value)
