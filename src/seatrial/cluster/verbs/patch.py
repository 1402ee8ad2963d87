"""JSON patches (RFC 6902) and JSON merge patches (RFC 7386) as the API server applies them. Knows no schema.

The API server does not report why a JSON patch failed: every error is the same refusal. What is an error follows
evanphx/json-patch v4.12, which is laxer than the RFC in places (`replace` adds a missing key).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from seatrial.cluster.refusal import Refused, bad_request, too_large
from seatrial.cluster.server.nesting import refuse_deep
from seatrial.cluster.verbs.strategic import strategic_patch
from seatrial.model import lazy_re
from seatrial.model.resource import Body
from seatrial.text.gotext import cannot_decode

__all__ = ["json_patch", "merge_patch", "strategic_patch"]

OPERATIONS_MAX = 10_000
COPIED_BYTES_MAX = 3 * 1024 * 1024
"""For all copies of a patch together. Each copy may double the size."""
INDEX = lazy_re.compile(r"[+-]?[0-9]+")


def json_patch(live: Body, operations: Any) -> Body:
    """The body with all operations applied in order. Refused as a whole if one fails."""
    if operations is None:
        return live  # Go reads null as an empty list; Pulumi sends it where no field changes its manager.
    if not isinstance(operations, list):
        raise bad_request("error decoding patch: " + cannot_decode(operations, "[]handlers.jsonPatchOp"))
    if len(operations) > OPERATIONS_MAX:
        raise too_large(f"The allowed maximum operations in a JSON patch is {OPERATIONS_MAX}, got {len(operations)}")
    body: Any = live
    copied_bytes = 0
    for operation in operations:
        if not isinstance(operation, dict):
            raise bad_request("error decoding patch: " + cannot_decode(operation, "handlers.jsonPatchOp"))
        apply = OPERATIONS.get(str(operation.get("op")))
        if apply is None:
            raise _does_not_apply()
        if apply is _copy:
            copied_bytes += len(msgspec.json.encode(_found(body, _path(operation, "from"))))
        if copied_bytes > COPIED_BYTES_MAX:
            raise _does_not_apply()
        body = apply(body, operation)
    if not isinstance(body, dict):
        raise _does_not_apply()
    refuse_deep(body)
    return body


def merge_patch(live: Body, patch: Any) -> Body:
    """The body merged with the patch: null deletes, mappings merge, anything else replaces."""
    if patch is None:
        raise bad_request("Invalid JSON Patch")
    if not isinstance(patch, dict):
        raise bad_request("error decoding patch: " + cannot_decode(patch, "map[string]interface {}"))
    return _merged(live, patch)


def _merged(live: Body, patch: Body) -> Body:
    result = dict(live)
    for key, value in patch.items():
        before = result.get(key)
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict) and isinstance(before, dict):
            result[key] = _merged(before, value)
        else:
            result[key] = _without_nulls(value)
    return result


def _without_nulls(value: Any) -> Any:
    match value:
        case dict():
            return {key: _without_nulls(item) for key, item in value.items() if item is not None}
        case list():
            return [_without_nulls(item) for item in value]
        case _:
            return value


def _add(body: Any, operation: Body) -> Any:
    path = _path(operation, "path")
    return _edited(body, path, lambda holder, key: _inserted(holder, key, operation.get("value")))


def _remove(body: Any, operation: Body) -> Any:
    return _edited(body, _path(operation, "path"), _removed)


def _replace(body: Any, operation: Body) -> Any:
    if operation.get("path") == "":
        # A value that is not an object or list is ignored.
        return operation["value"] if isinstance(operation.get("value"), dict | list) else body
    path = _path(operation, "path")
    return _edited(body, path, lambda holder, key: _replaced(holder, key, operation.get("value")))


def _move(body: Any, operation: Body) -> Any:
    source = _path(operation, "from")
    value = _found(body, source)
    rest = _edited(body, source, _removed)
    return _edited(rest, _path(operation, "path"), lambda holder, key: _inserted(holder, key, value))


def _copy(body: Any, operation: Body) -> Any:
    value = _found(body, _path(operation, "from"))
    return _edited(body, _path(operation, "path"), lambda holder, key: _inserted(holder, key, value))


def _test(body: Any, operation: Body) -> Any:
    found = body if operation.get("path") == "" else _found(body, _path(operation, "path"))
    expected = operation.get("value")
    if found != expected or isinstance(found, bool) != isinstance(expected, bool):
        raise _does_not_apply()
    return body


OPERATIONS: dict[Any, Callable[[Any, Body], Any]] = {
    "add": _add,
    "remove": _remove,
    "replace": _replace,
    "move": _move,
    "copy": _copy,
    "test": _test,
}


def _path(operation: Body, field: str) -> list[str]:
    """A JSON pointer as its decoded parts. Text before the first slash is ignored."""
    pointer = operation.get(field)
    if not isinstance(pointer, str) or "/" not in pointer:
        raise _does_not_apply()
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]


def _found(body: Any, path: list[str]) -> Any:
    """The value at the path; None if the last mapping has no such key."""
    for part in path[:-1]:
        body = _step(body, part)
    if isinstance(body, dict):
        return body.get(path[-1])
    return _step(body, path[-1])


def _edited(body: Any, path: list[str], edit: Callable[[Any, str], Any]) -> Any:
    """The body with `edit` applied to the parent of the last part of the path. Everything else is shared."""
    if len(path) == 1:
        return edit(body, path[0])
    below = _edited(_step(body, path[0]), path[1:], edit)
    return _replaced(body, path[0], below)


def _step(holder: Any, key: str) -> Any:
    match holder:
        case dict() if key in holder:
            return holder[key]
        case list():
            return holder[_index(key, len(holder))]
        case _:
            raise _does_not_apply()


def _inserted(holder: Any, key: str, value: Any) -> Any:
    match holder:
        case dict():
            return {**holder, key: value}
        case list() if key == "-":
            return [*holder, value]
        case list():
            index = _index(key, len(holder) + 1)
            return [*holder[:index], value, *holder[index:]]
        case _:
            raise _does_not_apply()


def _replaced(holder: Any, key: str, value: Any) -> Any:
    match holder:
        case dict():
            return {**holder, key: value}
        case list():
            index = _index(key, len(holder))
            return [*holder[:index], value, *holder[index + 1 :]]
        case _:
            raise _does_not_apply()


def _removed(holder: Any, key: str) -> Any:
    match holder:
        case dict() if key in holder:
            return {name: value for name, value in holder.items() if name != key}
        case list():
            index = _index(key, len(holder))
            return [*holder[:index], *holder[index + 1 :]]
        case _:
            raise _does_not_apply()


def _index(key: str, size: int) -> int:
    """An index into a list of this size. Negative indices count from the end."""
    if not INDEX.fullmatch(key):
        raise _does_not_apply()
    index = int(key)
    if not -size <= index < size:
        raise _does_not_apply()
    return index % size


def _does_not_apply() -> Refused:
    return Refused(422, "Invalid", "the server rejected our request due to an error in our request")
