"""Whether an object fits its schema, with the errors of structured-merge-diff before an apply. Refuses nothing."""

from __future__ import annotations

from typing import Any

from seatrial.cluster.fields.fieldset import element, printed
from seatrial.cluster.fields.shape import EXTRA, ITEMS, Shape
from seatrial.text.gotext import plain, syntax, type_name

Fault = tuple[str, str]
"""The path and the problem."""

UNDECLARED = "field not declared in schema"

_ANY: frozenset[type] = frozenset((str, int, float, bool, type(None)))

# The Python types of values that always fit, by the type of the schema.
FITS: dict[str, frozenset[type]] = {
    "": _ANY,
    "scalar": _ANY,
    "string": frozenset((str, type(None))),
    "numeric": frozenset((int, float, type(None))),
    "boolean": frozenset((bool, type(None))),
    "map": frozenset((type(None),)),
    "list": frozenset((type(None),)),
}


def misfits(value: Any, shape: Shape) -> list[Fault]:
    """All values that do not fit."""
    if type(value) in FITS[shape.type]:
        return []
    if type(value) is dict and shape.type in ("map", ""):
        return _map_faults(value, shape)
    if type(value) is list and shape.type in ("list", ""):
        return _list_faults(value, shape)
    return [("", _expected(value, shape.type))]


def in_words(faults: list[Fault]) -> str:
    """All problems as one error text."""
    texts = [f"{path}: {problem}" if path else problem for path, problem in faults]
    if len(texts) < 2:
        return "".join(texts)
    return "\n  ".join(("errors:", *texts))


def _map_faults(value: dict[str, Any], shape: Shape) -> list[Fault]:
    found: list[Fault] = []
    below, declared = shape.below, shape.declared
    for key, child in value.items():
        if key in declared:
            there = below[key]
        elif shape.closed:
            found.append((f".{key}", UNDECLARED))
            continue
        else:
            there = below[EXTRA]
        if type(child) not in FITS[there.type] and (faults := misfits(child, there)):
            found += [(f".{key}{path}", problem) for path, problem in faults]
    return found


def _list_faults(value: list[Any], shape: Shape) -> list[Fault]:
    found: list[Fault] = []
    seen: set[str] = set()
    items = shape.below[ITEMS]
    named = shape.list_type != "atomic"
    for index, child in enumerate(value):
        name = ""
        if named:
            if problem := _keyless(child, shape):
                return [*found, ("", f"element {index}: {problem}")]
            name = element(child, shape)
            if name in seen:
                found.append(("", f"duplicate entries for key {printed(name)}"))
            seen.add(name)
        if type(child) not in FITS[items.type] and (faults := misfits(child, items)):
            step = printed(name) if named else f"[{index}]"
            found += [(step + path, problem) for path, problem in faults]
    return found


def _keyless(item: Any, shape: Shape) -> str:
    """Why an item of an associative list has no key; empty if it has one."""
    if shape.list_type == "map":
        if type(item) is dict and item.get(shape.keys[0][0]) is not None:
            return ""
        if item is None:
            return "associative list with keys may not have a null element"
        if type(item) is not dict:
            return "associative list with keys may not have non-map elements"
        if all(item.get(name, default) is None for name, default in shape.keys):
            names = " ".join(f'"{name}"' for name, _ in shape.keys)
            return (
                f"associative list with keys has an element that omits all key fields [{names}] "
                "(and doesn't have default values for any key fields)"
            )
        return ""
    if type(item) is dict:
        return "associative list without keys has an element that's a map type"
    if type(item) is list:
        return "not supported: associative list with lists as elements"
    if item is None:
        return "associative list without keys has an element that's an explicit null"
    return ""


def _expected(value: Any, type_: str) -> str:
    match type_:
        case "numeric":
            return f"expected numeric (int or float), got {type_name(value)}"
        case "string":
            return f"expected string, got &value.valueUnstructured{{Value:{syntax(value)}}}"
        case "scalar":
            return f"expected any scalar, got &{{{plain(value)}}}"
        case _:
            return f"expected {type_}, got &{{{plain(value)}}}"
