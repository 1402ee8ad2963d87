"""Patterns for objects that another object names: `Secret {metadata.name}-app if spec.enabled`.

Knows no kind. operators.toml and trial files contain such patterns.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any, cast, get_args

from msgspec import Struct

from seatrial.kinds import Stage
from seatrial.model import lazy_re
from seatrial.model.resource import Body, dig, metadata

Path = tuple[str | int, ...]

EACH = "each"
"""In a pattern, the element of the list that it iterates over."""
_FIELD = lazy_re.compile(r"\{([^{}|]+)(?:\|((?:[^{}]|\{[^{}]*\})*))?\}")
_DOT = lazy_re.compile(r"(?<!\\)\.")


class Pattern(Struct, frozen=True):
    """Which object is meant. `kind` and `name` contain fields in braces, with defaults for missing ones."""

    kind: str
    name: str
    namespace: str = ""
    each: str = ""
    when: str = ""
    unless: str = ""
    stage: Stage = "ready"
    optional: bool = False


class MatchedObject(Struct, frozen=True):
    """An object that a pattern matched. `field` is where it is named, or empty."""

    kind: str
    group: str
    namespace: str
    name: str
    field: Path


@cache
def parse(text: str) -> Pattern:
    kind, name, *words = text.split()
    options: dict[str, str] = {}
    optional = False
    while words:
        word = words.pop(0)
        if word == "optional":
            optional = True
        else:
            options[word] = words.pop(0)
    stage = options.get("at", "ready")
    assert stage in get_args(Stage), text
    return Pattern(
        kind,
        name,
        namespace=options.get("in", ""),
        each=options.get("each", ""),
        when=options.get("if", ""),
        unless=options.get("unless", ""),
        stage=cast(Stage, stage),
        optional=optional,
    )


def matches(pattern: Pattern, body: Body) -> Iterator[MatchedObject]:
    """The objects that `body` names, each once. Without a namespace in the pattern, the body's own."""
    seen = set()
    for found in _matches(pattern, body):
        if (found.kind, found.namespace, found.name) not in seen:
            seen.add((found.kind, found.namespace, found.name))
            yield found


def _matches(pattern: Pattern, body: Body) -> Iterator[MatchedObject]:
    if not metadata(body).get("name"):
        return
    if pattern.when and not _at(body, pattern.when):
        return
    if pattern.unless and _at(body, pattern.unless):
        return
    for at, element in _elements(body, _split(pattern.each)) if pattern.each else [((), None)]:
        kind, name = _filled(pattern.kind, body, element), _filled(pattern.name, body, element)
        if kind and name:
            namespace = _filled(pattern.namespace, body, element) if pattern.namespace else ""
            short, _, group = kind.partition(".")
            own = str(metadata(body).get("namespace") or "")
            yield MatchedObject(short, group, namespace or own, name, _field(pattern.name, at))


def _elements(value: Any, path: list[str], at: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every element at a path that may lead through lists, and with `*` through any key. For a mapping, its keys."""
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _elements(item, path, (*at, index))
    elif path and path[0] == "*" and isinstance(value, dict):
        for key, item in value.items():
            yield from _elements(item, path[1:], (*at, key)) if path[1:] else [((*at, key), item)]
    elif path:
        if isinstance(value, dict) and path[0] in value:
            yield from _elements(value[path[0]], path[1:], (*at, path[0]))
    elif isinstance(value, dict) and at and not isinstance(at[-1], int):
        for key in value:
            yield (*at, key), key
    elif value is not None:
        yield at, value


def _filled(text: str, body: Body, element: Any) -> str:
    """The text with its fields substituted; empty if a field without a default is missing."""
    missing = False

    def substitute(found: re.Match[str]) -> str:
        nonlocal missing
        value = _value(found[1], body, element)
        if value in (None, "") and found[2] is not None:
            value = _filled(found[2], body, element)
        missing = missing or value in (None, "")
        return str(value)

    filled = _FIELD.sub(substitute, text)
    # Names that operators derive from other names are DNS names.
    return "" if missing else filled.replace("_", "-")


def _value(path: str, body: Body, element: Any) -> Any:
    if path == EACH:
        return element
    if path.startswith(f"{EACH}."):
        return dig(element, *_split(path)[1:])
    return _at(body, path)


def _field(name: str, at: Path) -> Path:
    """Where the name is written: the first field of its pattern."""
    found = _FIELD.search(name)
    if found is None:
        return ()
    path = _split(found[1])
    return (*at, *path[1:]) if path[0] == EACH else tuple(path)


def _at(body: Body, path: str) -> Any:
    return dig(body, *_split(path))


def _split(path: str) -> list[str]:
    return [part.replace("\\.", ".") for part in _DOT.split(path)]
