"""Validation of custom resources against their structural schema, with the errors of kube-openapi's validators.

Rules in CEL (`x-kubernetes-validations`) are only collected here; `expressions` evaluates them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from seatrial.cluster.validation.causes import duplicate, invalid, required, shown, unsupported
from seatrial.cluster.validation.structural import EMBEDDED
from seatrial.model import lazy_re
from seatrial.model.resource import Body
from seatrial.text import regex

INT_OR_STRING = "x-kubernetes-int-or-string"
CEL = "x-kubernetes-validations"

_UNCHECKED = (
    "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation"
)
# Errors after which CEL rules are not run. `Invalid value` is not one of them, unless it is about a type.
_BLOCKING = (": Required value", ": Unsupported value", ": Too long", ": Too many", " in body must be of type ")

_NAMES: dict[type, str] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    dict: "object",
    list: "array",
    type(None): "null",
}

_ZEROS: dict[str | None, Any] = {"integer": 0, "number": 0, "boolean": False, "string": "", "array": [], "object": {}}

_FORMATS = {
    "date-time": lazy_re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(:\d\d([.,]\d+)?)?([Zz]|[-+]\d\d:?\d\d)?"),
    "date": lazy_re.compile(r"\d{4}-\d\d-\d\d"),
    "uri": lazy_re.compile(r"[a-zA-Z][-+.a-zA-Z0-9]*:.*|/.*"),
    "uuid": lazy_re.compile(r"(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}"),
    "ipv4": lazy_re.compile(r"\d{1,3}(\.\d{1,3}){3}"),
    "duration": lazy_re.compile(r"-?(\d+(\.\d+)?\s*(ns|us|µs|ms|s|m|h|d|w)[a-z]*\s*)+|0"),
}


def custom_problems(body: Body, node: Body) -> Iterator[str]:
    """The problems of a custom resource that is already pruned and defaulted."""
    found = [*_fields(body, node, ""), *_list_problems(body, node, "")]
    yield from found
    if any(word in sentence for sentence in found for word in _BLOCKING) and next(rules_in_cel(node), None):
        yield _UNCHECKED


def with_required(value: Body, node: Body) -> Body:
    """A status with a zero value for each required field that it lacks, as a program in Go writes it."""
    fields: Body = node.get("properties") or {}
    zeros = {name: _ZEROS.get((fields.get(name) or {}).get("type")) for name in node.get("required") or ()}
    inner = {
        name: with_required(given, fields[name])
        for name, given in value.items()
        if isinstance(given, dict) and name in fields
    }
    return {**{name: zero for name, zero in zeros.items() if zero is not None}, **value, **inner}


def rules_in_cel(node: Body) -> Iterator[tuple[Body, Body]]:
    """All rules, each with the schema it belongs to."""
    for rule in node.get(CEL) or ():
        yield rule, node
    for child in (node.get("properties") or {}).values():
        yield from rules_in_cel(child)
    for key in ("items", "additionalProperties"):
        if isinstance(node.get(key), dict):
            yield from rules_in_cel(node[key])


def _problems(value: Any, node: Body, path: str) -> Iterator[str]:
    """In the order of kube-openapi's validators: type, combinations, text, numbers, lists, choices, fields."""
    if value is None:
        yield from () if node.get("nullable") else _null(node, path)
        return
    yield from _type(value, node, path)
    yield from _combined(value, node, path)
    match value:
        case str():
            yield from _text(value, node, path)
        case bool():
            pass
        case int() | float():
            yield from _number(value, node, path)
        case list():
            yield from _items(value, node, path)
    if "enum" in node and value not in node["enum"]:
        yield unsupported(path, value, (str(choice) for choice in node["enum"]))
    if isinstance(value, dict):
        yield from _fields(value, node, path)


def _null(node: Body, path: str) -> Iterator[str]:
    """Only the type and the choices of a null are checked."""
    yield from _type(None, node, path)
    if "enum" in node:
        yield unsupported(path, None, (str(choice) for choice in node["enum"]))


def _type(value: Any, node: Body, path: str) -> Iterator[str]:
    declared = "integer,string" if node.get(INT_OR_STRING) else str(node.get("type") or "")
    name = _NAMES[type(value)]
    if type(value) is float and value.is_integer() and declared == "integer":
        name = "integer"
    if declared and name not in declared.split(",") and not (name == "integer" and declared == "number"):
        yield invalid(path, name, f'{path} in body must be of type {declared}: "{name}"')
    elif isinstance(value, str) and (form := _FORMATS.get(str(node.get("format")))) and not form.fullmatch(value):
        yield invalid(path, value, f'{path} in body must be of type {node["format"]}: "{value}"')


def _combined(value: Any, node: Body, path: str) -> Iterator[str]:
    if any_of := node.get("anyOf"):
        found = [list(_problems(value, option, path)) for option in any_of]
        if all(found):
            yield f'<nil>: Invalid value: "": "{path}" must validate at least one schema (anyOf)'
            yield from found[0]
    if one_of := node.get("oneOf"):
        found = [list(_problems(value, option, path)) for option in one_of]
        right = sum(1 for faults in found if not faults)
        if right != 1:
            detail = "Found none valid" if not right else f"Found {right} valid alternatives"
            yield f'<nil>: Invalid value: "": "{path}" must validate one and only one schema (oneOf). {detail}'
            yield from [] if right else found[0]
    if all_of := node.get("allOf"):
        found = [list(_problems(value, option, path)) for option in all_of]
        yield from (fault for faults in found for fault in faults)
        if any(found):
            none = " None validated" if all(found) else ""
            yield f'<nil>: Invalid value: "": "{path}" must validate all the schemas (allOf).{none}'
    if (unwanted := node.get("not")) and not any(_problems(value, unwanted, path)):
        yield f'<nil>: Invalid value: "": "{path}" must not validate the schema (not)'


def _text(value: str, node: Body, path: str) -> Iterator[str]:
    """The first of these problems."""
    if (most := node.get("maxLength")) is not None and len(value) > most:
        yield f"{path}: Too long: may not be more than {most} bytes"
    elif (least := node.get("minLength")) is not None and len(value) < least:
        yield invalid(path, value, f"{path} in body should be at least {least} chars long")
    elif (pattern := node.get("pattern")) and regex.is_found(str(pattern), value) is False:
        yield invalid(path, value, f"{path} in body should match '{pattern}'")


def _number(value: float, node: Body, path: str) -> Iterator[str]:
    if (most := node.get("maximum")) is not None:
        if node.get("exclusiveMaximum"):
            if value >= most:
                yield invalid(path, value, f"{path} in body should be less than {shown(most)}")
        elif value > most:
            yield invalid(path, value, f"{path} in body should be less than or equal to {shown(most)}")
    if (least := node.get("minimum")) is not None:
        if node.get("exclusiveMinimum"):
            if value <= least:
                yield invalid(path, value, f"{path} in body should be greater than {shown(least)}")
        elif value < least:
            yield invalid(path, value, f"{path} in body should be greater than or equal to {shown(least)}")
    if (factor := node.get("multipleOf")) and value / factor != int(value / factor):
        yield invalid(path, value, f"{path} in body should be a multiple of {shown(factor)}")


def _items(value: list[Any], node: Body, path: str) -> Iterator[str]:
    items = node.get("items")
    if isinstance(items, dict):
        for index, item in enumerate(value):
            yield from _problems(item, items, f"{path}[{index}]")
    if (least := node.get("minItems")) is not None and len(value) < least:
        yield invalid(path, len(value), f"{path} in body should have at least {least} items")
    if (most := node.get("maxItems")) is not None and len(value) > most:
        yield f"{path}: Too many: {len(value)}: must have at most {most} items"


def _fields(value: Body, node: Body, path: str) -> Iterator[str]:
    properties: Body = node.get("properties") or {}
    extra = node.get("additionalProperties")
    if (least := node.get("minProperties")) is not None and len(value) < least:
        yield invalid(path, len(value), f"{path} in body should have at least {least} properties")
    if (most := node.get("maxProperties")) is not None and len(value) > most:
        yield f"{path}: Too many: {len(value)}: must have at most {most} items"
    for key, child in value.items():
        below = properties.get(key, extra)
        # The metadata of the root object was validated before.
        if isinstance(below, dict) and (path or key != "metadata"):
            yield from _problems(child, below, f"{path}.{key}" if path else key)
    needed = [*(node.get("required") or ()), *(("apiVersion", "kind") if node.get(EMBEDDED) else ())]
    for key in needed:
        if key not in value:
            yield required(f"{path}.{key}" if path else key)


def _list_problems(value: Any, node: Body, path: str) -> Iterator[str]:
    """The problem of duplicate items in a set, or duplicate keys in a list of maps."""
    match value:
        case dict():
            properties, extra = node.get("properties") or {}, node.get("additionalProperties")
            for key, child in value.items():
                below = properties.get(key, extra)
                if isinstance(below, dict):
                    yield from _list_problems(child, below, f"{path}.{key}" if path else key)
        case list():
            keys = node.get("x-kubernetes-list-map-keys") or ()
            kind = node.get("x-kubernetes-list-type")
            seen = set()
            for index, item in enumerate(value):
                here = f"{path}[{index}]"
                if kind in ("set", "map"):
                    identity = _identity(item, keys if kind == "map" else ())
                    if shown(identity) in seen:
                        yield duplicate(here, identity)
                    seen.add(shown(identity))
                if isinstance(node.get("items"), dict):
                    yield from _list_problems(item, node["items"], here)


def _identity(item: Any, keys: list[str] | tuple[str, ...]) -> Any:
    return {key: item[key] for key in keys if key in item} if keys and isinstance(item, dict) else item
