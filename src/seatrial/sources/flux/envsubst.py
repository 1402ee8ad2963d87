"""Variable substitution of Flux after a build: `${name}`, with a default or one of bash's operators.

Upstream: fluxcd/pkg/envsubst, a fork of drone/envsubst. `$name` without braces is not a variable, and `$$` is a dollar.
Lengths and offsets are in characters here, and in bytes upstream.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable

from seatrial.model import lazy_re

Lookup = Callable[[str, bool], str]
"""Looks up a name; the flag says whether there is a default."""

NESTING_MAX = 50
BAD = "bad substitution"
NO_BRACE = "missing closing brace"
NO_NAME = "unable to parse variable name"
NO_PARAMETER = "unable to parse substitution within function"
_NAME = lazy_re.compile(r"\w+")
_CASE: dict[str, Callable[[str], str]] = {
    ",": lambda text: text[:1].lower() + text[1:],
    ",,": str.lower,
    "^": lambda text: text[:1].upper() + text[1:],
    "^^": str.upper,
}
_REPLACE: dict[str, Callable[[str, str, str], str]] = {
    "/": lambda text, old, new: text.replace(old, new, 1),
    "//": lambda text, old, new: text.replace(old, new),
    "/#": lambda text, old, new: new + text.removeprefix(old) if text.startswith(old) else text,
    "/%": lambda text, old, new: text.removesuffix(old) + new if text.endswith(old) else text,
}


class BadSubstitution(Exception):
    """A syntax error in a `${`, with the message of Flux."""


def expand(text: str, lookup: Lookup, on_bad: Callable[[BadSubstitution], str]) -> str:
    """The text with its variables replaced; `on_bad` gives the replacement for a syntax error."""
    parts, at = [], 0
    while at < len(text):
        if text.startswith("$$", at):
            parts.append("$")
            at += 2
        elif text.startswith("${", at):
            try:
                value, at = _variable(text, at + 2, lookup, 0)
            except BadSubstitution as bad:
                value, at = on_bad(bad), at + 2
            parts.append(value)
        else:
            end = text.find("$", at + 1)
            end = len(text) if end < 0 else end
            parts.append(text[at:end])
            at = end
    return "".join(parts)


def _variable(text: str, at: int, lookup: Lookup, depth: int) -> tuple[str, int]:
    """The value of the variable that begins after a brace, and its end."""
    if depth > NESTING_MAX:
        raise BadSubstitution(f"more than {NESTING_MAX} variables in one another")
    if text[at : at + 1] == "#":
        name, at = _name(text, at + 1, BAD)
        return str(len(lookup(name, False))), _closed(text, at, BAD)
    name, at = _name(text, at, NO_NAME)
    following = text[at : at + 1]
    if following == "=" or text[at : at + 2] in (":=", ":-", ":?", ":+"):
        return _default(text, at + (1 if following == "=" else 2), lookup(name, True), lookup, depth)
    if following in (",", "^"):
        operator = text[at : at + 2] if text[at : at + 2] in _CASE else following
        return _CASE[operator](lookup(name, False)), _closed(text, at + len(operator), BAD)
    if following == ":":
        return _part(text, at + 1, lookup(name, False), lookup, depth)
    if following == "/":
        return _replaced(text, at, lookup(name, False), lookup, depth)
    if following in ("#", "%"):
        operator = following * 2 if text[at : at + 2] == following * 2 else following
        pattern, at = _parameter(text, at + len(operator), "}", lookup, depth)
        return _without(lookup(name, False), pattern, operator), _closed(text, at, BAD)
    return lookup(name, False), _closed(text, at, NO_BRACE)


def _name(text: str, at: int, otherwise: str) -> tuple[str, int]:
    found = _NAME.match(text, at)
    if found is None:
        raise BadSubstitution(otherwise)
    return found.group(), found.end()


def _closed(text: str, at: int, otherwise: str) -> int:
    if text[at : at + 1] != "}":
        raise BadSubstitution(otherwise)
    return at + 1


def _parameter(text: str, at: int, ends: str, lookup: Lookup, depth: int) -> tuple[str, int]:
    """One argument: another variable, or text up to a terminator."""
    if text.startswith("${", at):
        return _variable(text, at + 2, lookup, depth + 1)
    end = at
    while end < len(text) and text[end] not in ends and not text.startswith("${", end):
        end += 2 if "/" in ends and text[end : end + 2] in ("\\/", "\\\\") else 1
    if end == at:
        raise BadSubstitution(NO_PARAMETER)
    plain = text[at:end]
    return (re.sub(r"\\([/\\])", r"\1", plain) if "/" in ends else plain), end


def _default(text: str, at: int, value: str, lookup: Lookup, depth: int) -> tuple[str, int]:
    """`${name:=text}`; all operators of this form are equivalent."""
    parts = []
    while text[at : at + 1] != "}":
        part, at = _parameter(text, at, "}", lookup, depth)
        parts.append(part)
    return value or "".join(parts), at + 1


def _part(text: str, at: int, value: str, lookup: Lookup, depth: int) -> tuple[str, int]:
    """`${name:first}` and `${name:first:length}`; a non-number has no effect."""
    first, at = _parameter(text, at, ":}", lookup, depth)
    length = ""
    if text[at : at + 1] == ":":
        length, at = _parameter(text, at + 1, "}", lookup, depth)
    at = _closed(text, at, BAD)
    if not _is_number(first) or (length and not _is_number(length)):
        return value, at
    start = int(first) if int(first) >= 0 else max(0, len(value) + int(first))
    return value[start : start + int(length)] if length else value[start:], at


def _replaced(text: str, at: int, value: str, lookup: Lookup, depth: int) -> tuple[str, int]:
    operator = text[at : at + 2] if text[at : at + 2] in _REPLACE else "/"
    old, at = _parameter(text, at + len(operator), "/", lookup, depth)
    if text[at : at + 1] != "/":
        raise BadSubstitution(BAD)
    new, at = ("", at + 1) if text[at + 1 : at + 2] == "}" else _parameter(text, at + 1, "}", lookup, depth)
    return _REPLACE[operator](value, old, new), _closed(text, at, BAD)


def _without(value: str, pattern: str, operator: str) -> str:
    """Text without the shortest or longest match of a pattern at its start or end."""
    fits = re.compile(fnmatch.translate(pattern)).match
    at_the_end = operator.startswith("%")
    cuts = range(1, len(value) + 1) if len(operator) == 1 else range(len(value), 0, -1)
    for length in cuts:
        piece = value[-length:] if at_the_end else value[:length]
        if fits(piece):
            return value[:-length] if at_the_end else value[length:]
    return value


def _is_number(text: str) -> bool:
    return re.fullmatch(r"[+-]?\d{1,9}", text) is not None
