"""Which values the conditions of templates read, by what dot and variables stand for. Reads text; renders nothing.

Follows `with`, variables, `include` and `template` with the context that a caller passes, and a few functions. A value
that is reached in another way, such as by an element of a list, is not seen.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from seatrial.model import lazy_re
from seatrial.sources.charts.gotemplate import TemplateAction, actions
from seatrial.sources.charts.truth import words_of

Path = tuple[str, ...]

_TERM = lazy_re.compile(r"(?P<start>\$\w*|\(.*\))?(?P<fields>(?:\.\w+)*\.?)", re.DOTALL)
_ASSIGNED = lazy_re.compile(r"(\$\w+)\s*:?=\s*(.*)", re.DOTALL)
_BLOCK = lazy_re.compile(r"(if|with|range|define|block)\b\s*(.*)", re.DOTALL)
_ELSE = lazy_re.compile(r"else\b\s*(?:(if|with)\b\s*(.*))?", re.DOTALL)
_LOOP = lazy_re.compile(r"\$\w+\s*(?:,\s*\$\w+\s*)?:=\s*(.*)", re.DOTALL)
_SILENT = lazy_re.compile(r"(?:end|break|continue|template)\b|/\*")
_KEEPS = ("and", "or", "not", "default", "coalesce", "ternary", "required")
"""Functions whose operands are as true or false as their result."""
NESTED_MAX = 10


class Root(Struct, frozen=True):
    """What Helm passes to a template: `.Values` and others."""


class Part(Struct, frozen=True):
    """A part of the values of the chart."""

    path: Path


class Made(Struct, frozen=True):
    """A map that a template makes with `dict`."""

    entries: tuple[tuple[str, Meaning], ...]


Meaning = Root | Part | Made | None
"""What an expression stands for; None if that is not known."""
ROOT = Root()


class Read(Struct, frozen=True):
    """A value that is read, and whether only its truth matters there."""

    path: Path
    only_truth: bool


class Call(Struct, frozen=True):
    """A named template that is called, and with what."""

    name: str
    context: Meaning
    start: int


class ConditionReads(Struct, frozen=True):
    """An `if` or `with`: the offsets of its action and of the end of its block, and the values it reads."""

    start: int
    end: int
    reads: tuple[Read, ...]


class RegionReads(Struct, frozen=True):
    """A template or a named template as it is called once."""

    conditions: tuple[ConditionReads, ...]
    calls: tuple[Call, ...]
    printed: frozenset[Path]
    """Values that are written, looped over or passed on: more than their truth matters."""


Named = Callable[[str, Meaning], tuple[Read, ...]]
"""The values that a named template reads for what it returns."""


class _Scope(Struct):
    """What dot, `$` and the variables stand for at one place."""

    dot: Meaning
    top: Meaning
    variables: dict[str, tuple[Meaning, tuple[Read, ...]]]
    named: Named


def region_reads(content: str, start: int, end: int, context: Meaning, named: Named) -> RegionReads:
    """The conditions and calls between two offsets, without those of named templates that are defined there."""
    scope = _Scope(context, context, {}, named)
    conditions: list[ConditionReads] = []
    calls: list[Call] = []
    printed: set[Path] = set()
    opened: list[tuple[str, Meaning, list[int]]] = []
    hidden = 0
    for action in actions(content, start, end):
        says = action.says
        if not hidden:
            calls.extend(replace(call, start=action.start) for call in _calls(says, scope))
        if block := _BLOCK.match(says):
            opened.append((block[1], scope.dot, []))
            hidden += block[1] == "define"
            if not hidden:
                _open(block[1], block[2], action, scope, conditions, opened[-1][2], printed)
        elif says.startswith("end") and opened:
            word, dot, own = opened.pop()
            for index in own:
                conditions[index] = replace(conditions[index], end=action.start)
            hidden -= word == "define"
            scope.dot = dot if not hidden else scope.dot
        elif not hidden and (other := _ELSE.match(says)) and opened:
            scope.dot = opened[-1][1]
            if other[1]:
                _open(other[1], other[2], action, scope, conditions, opened[-1][2], printed)
        elif not hidden:
            _follow(says, scope, printed)
    return RegionReads(tuple(conditions), tuple(calls), frozenset(printed))


def _open(
    word: str,
    asked: str,
    action: TemplateAction,
    scope: _Scope,
    conditions: list[ConditionReads],
    own: list[int],
    printed: set[Path],
) -> None:
    """Enter a block: note its condition, and what dot stands for inside."""
    if word == "range":
        loop = _LOOP.match(asked)
        printed.update(read.path for read in _reads(loop[1] if loop else asked, scope))
        scope.dot = None
        return
    if word == "block":
        scope.dot = None
        return
    if assigned := _ASSIGNED.match(asked):
        _assign(assigned[1], assigned[2], scope)
        asked = assigned[2]
    own.append(len(conditions))
    conditions.append(ConditionReads(action.start, action.start, tuple(_reads(asked, scope))))
    if word == "with":
        scope.dot = _meaning(asked, scope)


def _follow(says: str, scope: _Scope, printed: set[Path]) -> None:
    """An action outside of a condition: an assignment, or one that writes."""
    if assigned := _ASSIGNED.match(says):
        _assign(assigned[1], assigned[2], scope)
    elif not _SILENT.match(says):
        printed.update(read.path for read in _reads(says, scope, through_calls=False))


def _assign(name: str, pipeline: str, scope: _Scope) -> None:
    scope.variables[name] = _meaning(pipeline, scope), tuple(_reads(pipeline, scope))


def _calls(says: str, scope: _Scope, depth: int = 0) -> Iterator[Call]:
    """`include` and `template` anywhere in an action."""
    words = words_of(says)
    for index, word in enumerate(words):
        if word in ("include", "template") and index + 1 < len(words) and words[index + 1][0] in '"`':
            context = words[index + 2] if index + 2 < len(words) and words[index + 2] != "|" else ""
            yield Call(words[index + 1][1:-1], _term(context, scope, depth) if context else None, 0)
        elif word.startswith("(") and depth < NESTED_MAX:
            yield from _calls(word[1 : word.rfind(")")], scope, depth + 1)


def _reads(
    pipeline: str, scope: _Scope, *, only_truth: bool = True, through_calls: bool = True, depth: int = 0
) -> Iterator[Read]:
    """The values that a pipeline reads."""
    if depth > NESTED_MAX:
        return
    for command in _commands(pipeline):
        name, *rest = command
        if name == "include" and rest:
            if through_calls and rest[0][0] in '"`' and len(rest) > 1:
                yield from scope.named(rest[0][1:-1], _term(rest[1], scope, depth))
            continue
        if rest and isinstance(found := _called(command, scope, depth), Part):
            if found.path:
                yield Read(found.path, only_truth)
            continue
        truth = only_truth and (not rest or name in _KEEPS)
        for word in command:
            if word.startswith("(") and word.endswith(")"):
                inner = word[1:-1]
                yield from _reads(inner, scope, only_truth=truth, through_calls=through_calls, depth=depth + 1)
            elif isinstance(found := _term(word, scope, depth), Part) and found.path:
                yield Read(found.path, truth)
            elif word in scope.variables:
                yield from (Read(one.path, one.only_truth and truth) for one in scope.variables[word][1])


def _meaning(pipeline: str, scope: _Scope, depth: int = 0) -> Meaning:
    """What the first command of a pipeline stands for, where the others only give it a default."""
    commands = list(_commands(pipeline))
    if not commands or depth > NESTED_MAX or any(command[0] not in _KEEPS for command in commands[1:]):
        return None
    return _called(commands[0], scope, depth)


def _called(command: list[str], scope: _Scope, depth: int) -> Meaning:
    name, *rest = command
    if not rest:
        return _term(name, scope, depth)
    match name:
        case "default" | "required" | "deepCopy" | "merge" | "mergeOverwrite":
            return _term(rest[-1] if name in ("default", "required") else rest[0], scope, depth)
        case "get" | "index" if all(word[0] in '"`' for word in rest[1:]):
            return _fields(_term(rest[0], scope, depth), [word[1:-1] for word in rest[1:]])
        case "dig" if len(rest) > 2 and all(word[0] in '"`' for word in rest[:-2]):
            return _fields(_term(rest[-1], scope, depth), [word[1:-1] for word in rest[:-2]])
        case "dict":
            pairs = zip(rest[::2], rest[1::2], strict=False)
            return Made(tuple((key[1:-1], _term(word, scope, depth)) for key, word in pairs if key[0] in '"`'))
    return None


def _term(word: str, scope: _Scope, depth: int) -> Meaning:
    found = _TERM.fullmatch(word)
    if found is None or depth > NESTED_MAX:
        return None
    start = found["start"] or ""
    if start.startswith("("):
        begun = _meaning(start[1:-1], scope, depth + 1)
    elif start == "$":
        begun = scope.top
    elif start:
        begun = scope.variables.get(start, (None, ()))[0]
    else:
        begun = scope.dot
    return _fields(begun, [name for name in found["fields"].split(".") if name])


def _fields(begun: Meaning, names: list[str]) -> Meaning:
    """What fields of a meaning stand for. `.Values` of something unknown is taken for that of the chart."""
    at = begun
    for number, name in enumerate(names):
        match at:
            case Root():
                at = Part(()) if name == "Values" else None
            case Part(path):
                at = Part((*path, name))
            case Made(entries):
                at = dict(entries).get(name)
            case None:
                later = names[number:]
                return Part(tuple(later[later.index("Values") + 1 :])) if "Values" in later else None
    return at


def _commands(pipeline: str) -> Iterator[list[str]]:
    command: list[str] = []
    for word in (*words_of(pipeline), "|"):
        if word != "|":
            command.append(word)
        elif command:
            yield command
            command = []
