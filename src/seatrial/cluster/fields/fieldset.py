"""Field sets in the format of managedFields (FieldsV1): nested mappings with `f:`, `k:` and `v:` keys.

A node is `{}` for a field that is in the set without children. A field that is in the set together with some of its
children has a `.` key. Sets are shared and never changed in place. Knows no schemas and no managers.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from msgspec.json import Encoder

from seatrial.cluster.fields.shape import ITEMS, Shape
from seatrial.text.gotext import plain, quoted

Fields = dict[str, Any]

ITSELF = "."
MEMBER: Fields = {}

_encode = Encoder().encode


def element(item: Any, shape: Shape) -> str:
    """The name of an item of an associative list: `k:{"name":"a"}`, `v:"a"`."""
    if shape.list_type == "set" or type(item) is not dict:
        return "v:" + _encode(item).decode()
    key = {}
    for name, default in shape.keys:
        value = item.get(name, default)
        if value is not None:
            key[name] = value
    return "k:" + _encode(key).decode()


def fields_of(value: Any, shape: Shape, *, containers: bool) -> Fields:
    """All fields of an object.

    With `containers` also the fields that contain others, as an update owns them. An apply owns those only if they are
    keys of free-form mappings, list items, or empty.
    """
    return _node(value, shape, False, containers) or {}


def node_of(value: Any, shape: Shape) -> Fields:
    """A field and everything below it."""
    return _node(value, shape, True, True) or MEMBER


def _node(value: Any, shape: Shape, itself: bool, containers: bool) -> Fields | None:
    """The node of one value, None if nothing of it is in the set."""
    kind = type(value)
    if kind is dict and value and shape.granular:
        node: Fields = {ITSELF: MEMBER} if itself else {}
        below, declared = shape.below, shape.declared
        for key, child in value.items():
            if type(child) is not dict and type(child) is not list:
                node["f:" + key] = MEMBER
                continue
            inner = _node(child, below[key], containers or key not in declared, containers)
            if inner is not None:
                node["f:" + key] = inner
        return node or None
    if kind is list and shape.list_type != "atomic":
        if not value:
            return MEMBER if itself else None
        node = {ITSELF: MEMBER} if itself else {}
        items = shape.below[ITEMS]
        for child in value:
            name = element(child, shape)
            # A duplicate item is owned as a whole.
            node[name] = MEMBER if name in node else _node(child, items, True, containers)
        return node
    return MEMBER


def union(one: Fields, other: Fields) -> Fields:
    """The union of two sets. An empty mapping is the empty set."""
    if not one or one is other:
        return other
    return _joined(one, other) if other else one


def _joined(one: Fields, other: Fields) -> Fields:
    if one is other:
        return one
    result = dict(one) if one else {ITSELF: MEMBER}
    for name, node in (other or {ITSELF: MEMBER}).items():
        known = result.get(name)
        result[name] = node if known is None else _joined(known, node)
    return MEMBER if len(result) == 1 and ITSELF in result else result


def is_tree(fields: Any) -> bool:
    """Whether a value from a client is a field set: mappings on every level."""
    return isinstance(fields, dict) and all(is_tree(node) for node in fields.values())


def without(fields: Fields, removed: Fields) -> Fields:
    """The difference of two sets. Children of a removed field are removed too. The same object if nothing is."""
    result = fields
    for name, node in removed.items():
        known = result.get(name)
        if known is None:
            continue
        rest = None if not node else _rest(known, node)
        if rest is known:
            continue
        if result is fields:
            result = dict(fields)
        if rest is None:
            del result[name]
        else:
            result[name] = rest
    return result


def _rest(node: Fields, removed: Fields) -> Fields | None:
    """The rest of a node, None if nothing is left."""
    if not node:
        return None if ITSELF in removed else node
    rest = without(node, removed)
    if len(rest) == 1 and ITSELF in rest:
        return MEMBER
    return rest or None


def shared_paths(one: Fields, other: Fields) -> Iterator[str]:
    """The paths in both sets, as conflicts print them: `.spec.containers[name="a"].image`.

    At each level first the fields, then their children, as structured-merge-diff walks its sets.
    """
    names = sorted((name for name in one if name in other and name != ITSELF), key=_sort_key)
    for name in names:
        if is_member(one[name]) and is_member(other[name]):
            yield printed(name)
    for name in names:
        for path in shared_paths(one[name], other[name]):
            yield printed(name) + path


def is_member(node: Fields) -> bool:
    return not node or ITSELF in node


def printed(name: str) -> str:
    """One step of a path, printed for users."""
    kind, text = name[0], name[2:]
    match kind:
        case "f":
            return "." + text
        case "k":
            return "[" + ",".join(f"{key}={_printed_value(value)}" for key, value in json.loads(text).items()) + "]"
        case _:
            return f"[={_printed_value(json.loads(text))}]"


def _printed_value(value: Any) -> str:
    match value:
        case None:
            return "null"
        case str():
            return quoted(value)
        case _:
            return plain(value)


def _sort_key(name: str) -> tuple[str, list[tuple[str, bool, Any]]]:
    """Fields by name; items by their keys, numbers before strings and by size."""
    kind, text = name[0], name[2:]
    if kind == "f":
        return text, []
    value = json.loads(text)
    pairs = value.items() if isinstance(value, dict) else [("", value)]
    return "", [(key, isinstance(item, str), item) for key, item in pairs]
