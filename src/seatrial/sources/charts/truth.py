"""Conditions of templates that only read values: whether they hold. Knows and, or, not, eq, default and coalesce."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from msgspec import Struct

from seatrial.model import lazy_re
from seatrial.model.resource import Body, dig

_WORD = lazy_re.compile(
    r"""\s*((?:\((?:[^()"]|"[^"]*"|\([^()]*(?:\([^()]*\)[^()]*)*\))*\)|"[^"]*"|`[^`]*`|[^\s()|"`])+|\|)"""
)
"""One argument of a command, with parentheses up to three deep, or the bar between two commands."""
_VALUE = lazy_re.compile(r"\.Values((?:\.\w+)+)")
_SWITCH = lazy_re.compile(
    r"(?:enabled?|disabled?|created?|install|deploy)|(?:enable|disable|create|install|deploy|use)[A-Z]\w*"
)
_LITERALS: dict[str, Any] = {"true": True, "false": False, "nil": None}
NESTED_MAX = 10


class Known(Struct, frozen=True):
    """What is known where a condition is evaluated."""

    values: Body | None
    """None for a subchart, whose values are not at hand."""
    variables: dict[str, str]
    """The pipelines that were assigned: `$url` to `.Values.a | default .Values.b`."""


class _Unknown(Struct, frozen=True):
    pass


UNKNOWN = _Unknown()


def truth(condition: str, known: Known) -> bool | None:
    """Whether a condition holds; None if that is not known."""
    found = _value(condition, known)
    return None if isinstance(found, _Unknown) else bool(found)


def alternatives(condition: str, known: Known) -> tuple[str, ...]:
    """The keys of a value that are tried one after the other; none if they are not alternatives."""
    chain = known.variables.get(condition.strip(), condition)
    if not _is_chain(chain):
        return ()
    return tuple(dict.fromkeys(path[1:] for path in _VALUE.findall(re.sub(r"[()]", "", chain))))


def _is_chain(pipeline: str) -> bool:
    """Whether the whole pipeline is a value with fallbacks. Below `and` or `not`, a fallback is only a part."""
    words = words_of(pipeline)
    if len(words) == 1 and words[0].startswith("("):
        return _is_chain(words[0][1:-1])
    piped = [after for bar, after in pairwise(words) if bar == "|"]
    return bool(words) and (words[0] in ("default", "coalesce") or "default" in piped)


def is_switch(condition: str, known: Known) -> bool:
    """Whether the value is meant to be off: a boolean, by its name, its default or its value."""
    chain = known.variables.get(condition.strip(), condition)
    places = [place.split(".") for place in alternatives(condition, known)]
    values = known.values or {}
    return (
        any(_SWITCH.fullmatch(path[-1]) for path in places)
        or any(isinstance(dig(values, *path), bool) for path in places)
        or not {"true", "false"}.isdisjoint(words_of(chain))
    )


def _value(pipeline: str, known: Known, depth: int = 0) -> Any:
    """The value of a pipeline, as far as only values, literals and a few functions decide it."""
    words = words_of(pipeline)
    if not words or depth > NESTED_MAX:
        return UNKNOWN
    commands: list[list[str]] = [[]]
    for word in words:
        if word == "|":
            commands.append([])
        else:
            commands[-1].append(word)
    first, *others = commands
    piped = _called(first, [], known, depth)
    for command in others:
        piped = _called(command, [piped], known, depth)
    return piped


def _called(command: Sequence[str], piped: list[Any], known: Known, depth: int) -> Any:
    if not command:
        return UNKNOWN
    name, *rest = command
    if not rest and not piped:
        return _term(name, known, depth)
    arguments = [*(_term(word, known, depth) for word in rest), *piped]
    match name:
        case "default" if len(arguments) == 2:
            return _first_set([arguments[1], arguments[0]])
        case "coalesce" | "or":
            return _first_set(arguments)
        case "and":
            return _all_set(arguments)
        case "not" if len(arguments) == 1:
            return UNKNOWN if isinstance(arguments[0], _Unknown) else not arguments[0]
        case "eq" | "ne" if len(arguments) == 2:
            unknown = any(isinstance(one, _Unknown) for one in arguments)
            return UNKNOWN if unknown else (arguments[0] == arguments[1]) is (name == "eq")
        case "required" if len(arguments) == 2:
            return arguments[1]
    return UNKNOWN


def _first_set(arguments: Sequence[Any]) -> Any:
    for one in arguments:
        if isinstance(one, _Unknown) or one:
            return one
    return arguments[-1] if arguments else UNKNOWN


def _all_set(arguments: Sequence[Any]) -> Any:
    if any(not isinstance(one, _Unknown) and not one for one in arguments):
        return False
    return UNKNOWN if not arguments or any(isinstance(one, _Unknown) for one in arguments) else arguments[-1]


def _term(word: str, known: Known, depth: int) -> Any:
    if word in known.variables:
        return _value(known.variables[word], known, depth + 1)
    path = _VALUE.fullmatch(re.sub(r"[()]", "", word))
    if path is not None:
        return UNKNOWN if known.values is None else dig(known.values, *path[1][1:].split("."))
    if word.startswith("(") and word.endswith(")"):
        return _value(word[1:-1], known, depth + 1)
    if word[0] in '"`':
        return word[1:-1]
    return _LITERALS.get(word, UNKNOWN)


def words_of(pipeline: str) -> list[str]:
    return _WORD.findall(pipeline)
