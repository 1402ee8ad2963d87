"""Values schemas without what Helm would load for them. Reads nothing and requests nothing.

Helm 4.2 resolves every reference of a values.schema.json that leads out of it (`ValidateAgainstSingleSchema` in
pkg/chart/common/util/jsonschema.go): http and https by a request, `file://` and relative ones from the disk. The base
of a relative one is `file:///values.schema.json`: it names a file in the root of the disk, never one of the chart.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from msgspec import Struct

SCHEMA_FILE = "values.schema.json"

_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_DRAFT = "$schema"
_DRAFTS = ("draft-04/schema", "draft-06/schema", "draft-07/schema", "draft/2019-09/schema", "draft/2020-12/schema")
_KNOWN = {f"{scheme}://json-schema.org/{draft}" for scheme in ("http", "https") for draft in _DRAFTS}
"""The drafts that Helm's validator contains. It loads every other one."""

_ANYTHING = "http://json-schema.org/draft-07/schema#/properties/default"
"""A reference that accepts every value and that the validator contains.

A key beside `$ref` is ignored up to draft 7 and counts from 2019-09 on. A reference to this changes neither.
"""
_STRICTER = ("not", "oneOf", "if", "contains", "unevaluatedProperties", "unevaluatedItems")
"""Keywords that refuse more values where a schema in them accepts more."""

_DEPTH_MAX = 200


class LeanSchema(Struct, frozen=True):
    """A schema as Helm gets it, and the references that were left out of it."""

    content: bytes
    left_out: tuple[str, ...] = ()


@lru_cache(maxsize=128)
def without_references(content: bytes) -> LeanSchema:
    """The schema without references that lead out of it; the very bytes if it has none."""
    text = content.decode(errors="replace")
    try:
        schema, _ = json.JSONDecoder(parse_int=_number, parse_float=_number).raw_decode(text, _blank(text))
        found = tuple(dict.fromkeys(_outside(schema)))
    except json.JSONDecodeError as broken:  # Helm says the same of as much of it. More is not passed on unread.
        return LeanSchema(text[: broken.pos + 1].encode())
    except RecursionError:
        return LeanSchema(b"")
    if not found:
        return LeanSchema(content)
    return LeanSchema(json.dumps(_Relaxed(schema).lean(schema)).encode(), found)


def _number(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:  # A fraction, or more digits than Python reads.
        return float(text)


def _blank(text: str) -> int:
    return len(text) - len(text.lstrip(" \t\r\n"))


def _leads_out(key: str, value: object) -> bool:
    if not isinstance(value, str) or value.partition("#")[0] in _KNOWN:
        return False
    return key == _DRAFT or (key in _REFERENCES and not value.startswith("#") and value != "")


def _outside(node: Any, depth: int = 0) -> Iterator[str]:
    """The references of a schema that lead out of it. Under unknown keywords too: a local one may lead to these."""
    if depth > _DEPTH_MAX:
        raise RecursionError
    if isinstance(node, dict):
        for key, value in node.items():
            if _leads_out(key, value):
                yield value
            else:
                yield from _outside(value, depth + 1)
    elif isinstance(node, list):
        for value in node:
            yield from _outside(value, depth + 1)


class _Relaxed:
    """Copies a schema without the references that lead out of it. The copy accepts whatever the original accepts."""

    def __init__(self, root: Any) -> None:
        self._root = root
        self._doubtful: dict[str, bool] = {}
        """By local reference: whether the schema that it names leads out."""

    def lean(self, node: Any) -> Any:
        if isinstance(node, list):
            return [self.lean(value) for value in node]
        if not isinstance(node, dict):
            return node
        kept = {key: value for key, value in node.items() if not (key in _STRICTER and self._is_doubtful(node, key))}
        return {
            key: _ANYTHING if _leads_out(key, value) else self.lean(value)
            for key, value in kept.items()
            if not (key == _DRAFT and _leads_out(key, value))
        }

    def _is_doubtful(self, node: dict[str, Any], key: str) -> bool:
        """Whether a keyword cannot be judged; the `unevaluated` ones depend on everything beside them."""
        return self._reaches_out(node if key.startswith("unevaluated") else node[key])

    def _reaches_out(self, node: Any) -> bool:
        if isinstance(node, list):
            return any(map(self._reaches_out, node))
        if not isinstance(node, dict):
            return False
        return any(
            _leads_out(key, value)
            or (self._leads_on(value) if key in _REFERENCES and isinstance(value, str) else self._reaches_out(value))
            for key, value in node.items()
        )

    def _leads_on(self, reference: str) -> bool:
        """Whether a local reference ends at one that leads out, also over others. An anchor may: it is not resolved."""
        if reference not in self._doubtful:
            self._doubtful[reference] = False  # For a schema that contains itself.
            target = self._root
            for part in reference.removeprefix("#").split("/")[1:]:
                name = part.replace("~1", "/").replace("~0", "~")
                target = target.get(name) if isinstance(target, dict) else None
            self._doubtful[reference] = reference[1:2] not in ("", "/") or self._reaches_out(target)
        return self._doubtful[reference]
