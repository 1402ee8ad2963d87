"""Why a text is no JSON, in the words of Go's `encoding/json`. Knows nothing of Kubernetes."""

from __future__ import annotations

import json

from seatrial.model import lazy_re

SPACE = " \t\r\n"
LITERALS = {"t": "true", "f": "false", "n": "null"}
NUMBER = lazy_re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
HEX = "0123456789abcdefABCDEF"
END = "unexpected end of JSON input"
INSIDE = ("in literal", "in numeric", "in exponent", "in string escape", "in \\u", "after decimal point")
"""Where a space is wrong."""
NESTING_MAX = 200
"""Go allows 10,000: deeper texts get Go's words for those."""


class _Wrong(Exception):
    """Carries the sentence."""


def syntax_error(text: str) -> str:
    """`invalid character 's' after array element`; empty for valid JSON. Upstream: `scanner.go`."""
    try:
        at = _value(text, _spaces(text, 0), 0)
        at = _spaces(text, at)
        if at < len(text):
            raise _unexpected(text, at, "after top-level value")
    except _Wrong as wrong:
        return str(wrong)
    return ""


def _value(text: str, at: int, depth: int) -> int:
    """The place after the value that begins at `at`."""
    if depth > NESTING_MAX:
        raise _Wrong("exceeded max depth")
    first = text[at : at + 1]
    if first == "{":
        return _members(text, at + 1, depth)
    if first == "[":
        return _elements(text, at + 1, depth)
    if first == '"':
        return _string(text, at + 1)
    if first in LITERALS:
        return _literal(text, at, LITERALS[first])
    if first == "-" or first.isdigit():
        return _number(text, at)
    raise _unexpected(text, at, "looking for beginning of value")


def _members(text: str, at: int, depth: int) -> int:
    at = _spaces(text, at)
    if text[at : at + 1] == "}":
        return at + 1
    while True:
        if text[at : at + 1] != '"':
            raise _unexpected(text, at, "looking for beginning of object key string")
        at = _spaces(text, _string(text, at + 1))
        if text[at : at + 1] != ":":
            raise _unexpected(text, at, "after object key")
        at = _spaces(text, _value(text, _spaces(text, at + 1), depth + 1))
        if text[at : at + 1] == "}":
            return at + 1
        if text[at : at + 1] != ",":
            raise _unexpected(text, at, "after object key:value pair")
        at = _spaces(text, at + 1)


def _elements(text: str, at: int, depth: int) -> int:
    at = _spaces(text, at)
    if text[at : at + 1] == "]":
        return at + 1
    while True:
        at = _spaces(text, _value(text, at, depth + 1))
        if text[at : at + 1] == "]":
            return at + 1
        if text[at : at + 1] != ",":
            raise _unexpected(text, at, "after array element")
        at = _spaces(text, at + 1)


def _string(text: str, at: int) -> int:
    while text[at : at + 1] != '"':
        if at >= len(text):
            raise _Wrong(END)
        if text[at] < " ":
            raise _unexpected(text, at, "in string literal")
        at = _escape(text, at + 1) if text[at] == "\\" else at + 1
    return at + 1


def _escape(text: str, at: int) -> int:
    if text[at : at + 1] != "u":
        if at >= len(text) or text[at] not in '"\\/bfnrt':
            raise _unexpected(text, at, "in string escape code")
        return at + 1
    for place in range(at + 1, at + 5):
        if place >= len(text) or text[place] not in HEX:
            raise _unexpected(text, place, "in \\u hexadecimal character escape")
    return at + 5


def _literal(text: str, at: int, literal: str) -> int:
    for offset, letter in enumerate(literal):
        if text[at + offset : at + offset + 1] != letter:
            raise _unexpected(text, at + offset, f"in literal {literal} (expecting {_quoted(letter)})")
    return at + len(literal)


def _number(text: str, at: int) -> int:
    found = NUMBER.match(text, at)
    if found is None:
        raise _unexpected(text, at + 1, "in numeric literal")
    end = found.end()
    if text[end : end + 1] == ".":
        raise _unexpected(text, end + 1, "after decimal point in numeric literal")
    if text[end : end + 1] in ("e", "E"):
        sign = text[end + 1 : end + 2] in ("+", "-")
        raise _unexpected(text, end + (2 if sign else 1), "in exponent of numeric literal")
    return end


def _spaces(text: str, at: int) -> int:
    while at < len(text) and text[at] in SPACE:
        at += 1
    return at


def _unexpected(text: str, at: int, where: str) -> _Wrong:
    """Go takes the end of the text for a space, and reads bytes."""
    if at >= len(text) and not where.startswith(INSIDE):
        return _Wrong(END)
    byte = (text[at : at + 1] or " ").encode()[:1].decode("latin-1")
    return _Wrong(f"invalid character {_quoted(byte)} {where}")


def _quoted(letter: str) -> str:
    """As `quoteChar` prints it."""
    if letter == "'":
        return r"'\''"
    return "'" + ('"' if letter == '"' else json.dumps(letter, ensure_ascii=False)[1:-1]) + "'"
