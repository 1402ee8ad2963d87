"""Path expressions of jq, so far as Applications use them to say which differences do not count.

Fields, indices, `[]`, `?`, `|`, `,` and `select`, with comparisons, `and`, `or`, `not`, and tests of texts. Upstream
runs `del(...)` of the whole language: gojq, in util/argo/normalizers of Argo CD 3.5.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Struct

Path = tuple[str | int, ...]
ORDERED = {"<": operator.lt, ">": operator.gt, "<=": operator.le, ">=": operator.ge}
TESTS = ("startswith", "endswith", "contains", "test")
_TOKEN = re.compile(r'\s*("(?:\\.|[^"\\])*"|-?\d+(?:\.\d+)?|[A-Za-z_]\w*|==|!=|<=|>=|[.\[\]()|,?<>])')


class NotUnderstood(ValueError):
    """An expression that is beyond what is evaluated here."""


class _Node(Struct, frozen=True):
    """`kind` says what `parts` and `value` mean."""

    kind: str
    parts: tuple[_Node, ...] = ()
    value: Any = None


class _CannotIterate(Exception):
    """What jq fails for; then the whole expression has no effect."""


def paths(expression: str, body: Any) -> list[Path]:
    """The places in a body that an expression names. Raises `NotUnderstood`."""
    node = parsed(expression)
    try:
        return [path for path, _ in _walk(node, (), body)]
    except _CannotIterate:
        return []


def parsed(expression: str) -> _Node:
    tokens = _tokens(expression)
    node = _Parser(tokens).pipes()
    if tokens:
        raise NotUnderstood(expression)
    return node


def _tokens(expression: str) -> list[str]:
    found, at = [], 0
    while at < len(expression.rstrip()):
        token = _TOKEN.match(expression, at)
        if token is None:
            raise NotUnderstood(expression)
        found.append(token[1])
        at = token.end()
    return found


class _Parser:
    """What is left of an expression."""

    def __init__(self, tokens: list[str]) -> None:
        self._tokens = tokens

    def pipes(self) -> _Node:
        node = self._commas()
        while self._takes("|"):
            node = _Node("pipe", (node, self._commas()))
        return node

    def _commas(self) -> _Node:
        node = self._either()
        while self._takes(","):
            node = _Node("both", (node, self._either()))
        return node

    def _either(self) -> _Node:
        node = self._compared()
        while self._next() in ("and", "or"):
            node = _Node(self._tokens.pop(0), (node, self._compared()))
        return node

    def _compared(self) -> _Node:
        node = self._term()
        if self._next() in ("==", "!=", "<", ">", "<=", ">="):
            node = _Node("compare", value=self._tokens.pop(0), parts=(node, self._term()))
        return node

    def _term(self) -> _Node:
        token = self._tokens.pop(0) if self._tokens else ""
        if token == ".":
            return self._steps(self._field())
        if token == "(":
            node = self.pipes()
            self._needs(")")
            return self._steps(node)
        if token == "select" or token in TESTS:
            self._needs("(")
            inner = self.pipes()
            self._needs(")")
            return self._steps(_Node(token, (inner,)))
        if token == "not":
            return _Node("not")
        if token[:1] == '"' or token[:1].isdecimal() or token[:1] == "-" or token in ("true", "false", "null"):
            return _Node("literal", value=msgspec.json.decode(token))
        raise NotUnderstood(token)

    def _field(self) -> _Node:
        """What follows a dot: a name, or nothing."""
        token = self._next()
        if token[:1] == '"' or token[:1].isalpha() or token[:1] == "_":
            self._tokens.pop(0)
            return _Node("field", value=msgspec.json.decode(token) if token[0] == '"' else token)
        return _Node("self")

    def _steps(self, node: _Node) -> _Node:
        while self._next() in (".", "[", "?"):
            match self._tokens.pop(0):
                case ".":
                    node = _Node("pipe", (node, self._field()))
                case "?":
                    node = _Node("try", (node,))
                case _:
                    node = _Node("pipe", (node, self._bracket()))
        return node

    def _bracket(self) -> _Node:
        if self._takes("]"):
            return _Node("each")
        token = self._tokens.pop(0) if self._tokens else ""
        if token[:1] != '"' and not token.lstrip("-").isdecimal():
            raise NotUnderstood(token)
        self._needs("]")
        return _Node("field", value=msgspec.json.decode(token))

    def _next(self) -> str:
        return self._tokens[0] if self._tokens else ""

    def _takes(self, token: str) -> bool:
        if self._next() != token:
            return False
        self._tokens.pop(0)
        return True

    def _needs(self, token: str) -> None:
        if not self._takes(token):
            raise NotUnderstood(self._next())


def _walk(node: _Node, path: Path, value: Any) -> Iterator[tuple[Path, Any]]:
    """The places that an expression names from here, and what is there."""
    match node.kind:
        case "self":
            yield path, value
        case "field":
            yield (*path, node.value), _at(value, node.value)
        case "each":
            if not isinstance(value, dict | list):
                raise _CannotIterate
            for key, entry in value.items() if isinstance(value, dict) else enumerate(value):
                yield (*path, key), entry
        case "try":
            try:
                yield from list(_walk(node.parts[0], path, value))
            except _CannotIterate:
                return
        case "pipe":
            for inner, found in _walk(node.parts[0], path, value):
                yield from _walk(node.parts[1], inner, found)
        case "both":
            yield from _walk(node.parts[0], path, value)
            yield from _walk(node.parts[1], path, value)
        case "select":
            if any(found not in (None, False) for found in _values(node.parts[0], value)):
                yield path, value
        case _:
            raise NotUnderstood(node.kind)


def _values(node: _Node, value: Any) -> list[Any]:
    """What an expression comes to, where its place does not matter."""
    match node.kind:
        case "literal":
            return [node.value]
        case "not":
            return [value in (None, False)]
        case "pipe":
            return [found for inner in _values(node.parts[0], value) for found in _values(node.parts[1], inner)]
        case "compare":
            left, right = (_values(part, value) for part in node.parts)
            return [_compare(node.value, a, b) for a in left for b in right]
        case "and" | "or":
            true = [any(v not in (None, False) for v in _values(part, value)) for part in node.parts]
            return [all(true) if node.kind == "and" else any(true)]
        case kind if kind in TESTS:
            return [_test(kind, value, word) for word in _values(node.parts[0], value)]
    return [found for _, found in _walk(node, (), value)]


def _compare(sign: str, left: Any, right: Any) -> bool:
    if sign in ("==", "!="):
        return bool(left == right) == (sign == "==")
    if type(left) is not type(right) or not isinstance(left, str | int | float):
        raise NotUnderstood(sign)
    return bool(ORDERED[sign](left, right))


def _test(kind: str, value: Any, word: Any) -> bool:
    if not isinstance(value, str) or not isinstance(word, str):
        raise _CannotIterate
    match kind:
        case "startswith":
            return value.startswith(word)
        case "endswith":
            return value.endswith(word)
        case "contains":
            return word in value
    return re.search(word, value) is not None


def _at(value: Any, key: str | int) -> Any:
    if isinstance(value, dict) and isinstance(key, str):
        return value.get(key)
    if isinstance(value, list) and isinstance(key, int):
        return value[key] if -len(value) <= key < len(value) else None
    if value is None:
        return None
    raise _CannotIterate
