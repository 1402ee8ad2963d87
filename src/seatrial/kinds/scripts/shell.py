"""Which commands a container runs, and whether it fails if one of them does. Knows no command by name.

Visits the tree of a script without running it: branches may be taken, lists are gone through, functions are read where
they are called.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from seatrial.kinds.scripts.expansion import UNKNOWN, Scope, document_of, errexit, fields, text_of
from seatrial.kinds.scripts.parser import DECLARES, parse
from seatrial.kinds.scripts.syntax import (
    AndOr,
    Block,
    CaseClause,
    Counted,
    For,
    Function,
    Group,
    If,
    Loop,
    Node,
    OtherExpansion,
    Pipeline,
    Redirected,
    Simple,
    Substitution,
    Variable,
    Word,
)

Certainty = Literal["will", "may"]

DEPTH_MAX = 8
"""Of scripts in scripts: `sh -c "sh -c ..."`, `$( $( ) )`, functions that call functions."""
CALLS_MAX = 500
SHELLS = ("sh", "bash", "ash", "dash", "zsh", "ksh")
PREFIXES = ("time", "exec", "command", "builtin", "sudo", "nohup", "eval")
LEAVES = ("exit", "return")
PRINTS = ("echo", "printf")
PASSES_ON = ("cat", "envsubst", "sed", "tee")


class ShellCommand(Struct, frozen=True):
    """One simple command of a script."""

    words: tuple[str, ...]
    """With variables expanded where they are known; `UNKNOWN` stands for the rest."""
    certainty: Certainty = "will"
    """Whether it runs at all."""
    fatal: bool = True
    """Whether the container fails with it."""
    stdin: str = ""
    """A here-document that is fed to it."""
    feeder: tuple[str, ...] = ()
    """The words of the command whose output it reads."""
    retried: bool = False
    """Whether it is tried until it succeeds: `until ...`, `while ! ...`."""
    line: int = 0
    """Of the script, where it runs last: that of the call, for a command in a function."""


class _State(Struct):
    """What was set and defined so far."""

    scope: Scope
    exits: bool
    """`set -e`: a command that fails ends the script."""
    depth: int
    functions: dict[str, Node] = {}
    called: list[str] = []
    """The functions that were called, as often as they were."""
    within: tuple[str, ...] = ()
    """Those that are being called."""


class _Place(Struct, frozen=True):
    """Where in a script a command is."""

    sure: bool = True
    """Whether it is reached in every run."""
    last: bool = True
    """Whether the script fails with it, without `set -e`."""
    guarded: bool = False
    """Whether `set -e` ignores its failure."""
    asked: str = ""
    """`if`, `while` or `until` in the condition of one."""
    negated: bool = False


def commands_of(words: list[str], env: Mapping[str, str]) -> Iterator[ShellCommand]:
    """The commands that a container runs whose command line is `words`."""
    script, exits = script_of(words)
    if script is None:
        yield ShellCommand(tuple(words))
    else:
        yield from commands_in(script, env, exits=exits)


def commands_in(script: str, env: Mapping[str, str], *, exits: bool = False, depth: int = 0) -> Iterator[ShellCommand]:
    """The commands of a script, in order; those of functions that are never called may run."""
    if depth > DEPTH_MAX:
        return
    state = _State(Scope(dict(env)), exits, depth)
    yield from _block(parse(script).body, state, _Place())
    for name in [name for name in state.functions if name not in state.called]:
        yield from _node(state.functions[name], state, _Place(sure=False))


def script_of(words: list[str]) -> tuple[str | None, bool]:
    """The script after `sh -c`, and whether its options end it at the first failure."""
    if not words or words[0].rpartition("/")[2] not in SHELLS:
        return None, False
    for index, word in enumerate(words[1:], 1):
        if re.fullmatch(r"-[a-z]*c[a-z]*", word):
            rest = [other for other in words[index + 1 :] if not other.startswith("-")]
            return (rest[0] if rest else None), errexit(words[1 : index + 1])
    return None, errexit(words[1:])


def _block(block: Block, state: _State, place: _Place) -> Iterator[ShellCommand]:
    for index, statement in enumerate(block):
        yield from _statement(statement, state, replace(place, last=place.last and index == len(block) - 1))
        if place.sure and _may_leave(statement):
            place = replace(place, sure=False)


def _may_leave(statement: AndOr) -> bool:
    """Whether a script or function may end here with success: `kubectl get secret x && exit 0`."""
    return any(len(pipeline.stages) == 1 and _leaves(pipeline.stages[0]) for _, pipeline in statement.parts)


def _leaves(node: Node) -> bool:
    match node:
        case Simple(words) if words:
            return words[0].plain in LEAVES and [word.plain for word in words[1:2]] in ([], ["0"])
        case Group(body) if not node.subshell:
            return any(map(_may_leave, body))
        case If():
            blocks = (*(body for _, body in node.branches), node.otherwise)
            return any(_may_leave(statement) for block in blocks for statement in block)
        case Loop(body=body) | For(body=body) | Counted(body=body):
            return any(map(_may_leave, body))
        case CaseClause():
            return any(_may_leave(statement) for choice in node.choices for statement in choice.body)
        case Redirected():
            return _leaves(node.node)
    return False


def _statement(statement: AndOr, state: _State, place: _Place) -> Iterator[ShellCommand]:
    for index, (operator, pipeline) in enumerate(statement.parts):
        later = statement.parts[index + 1 :]
        rescue = next((other for operator, other in later if operator == "||"), None)
        gives_up = rescue is not None and _ends_script(rescue.stages[0])
        saved = (rescue is not None and not gives_up) or statement.background
        inner = replace(
            place,
            sure=place.sure and operator != "||",
            last=(place.last or gives_up) and not saved and not pipeline.negated,
            guarded=place.guarded or saved or pipeline.negated or bool(later),
            asked="if" if saved and place.asked else place.asked,
            negated=place.negated != pipeline.negated,
        )
        for found in _pipeline(pipeline, state, inner):
            yield replace(found, line=max(found.line, statement.line))


def _pipeline(pipeline: Pipeline, state: _State, place: _Place) -> Iterator[ShellCommand]:
    passed: tuple[tuple[str, ...], str] = (), ""
    for index, stage in enumerate(pipeline.stages):
        is_end = index == len(pipeline.stages) - 1
        inner = place if is_end else replace(place, last=False, guarded=True)
        feeder, poured = passed
        for found in _node(stage, state, inner):
            stdin = found.stdin or poured
            yield replace(found, stdin=stdin, feeder=found.feeder or feeder)
            passed = found.words, _output(found.words, stdin)


def _node(node: Node, state: _State, place: _Place) -> Iterator[ShellCommand]:
    maybe = replace(place, sure=False, asked="", negated=False)
    match node:
        case Simple():
            yield from _simple(node, state, place)
        case Group():
            yield from _block(node.body, replace(state, scope=state.scope.copy()) if node.subshell else state, place)
        case If():
            for asks, body in node.branches:
                yield from _block(asks, state, _asked(place, "if"))
                yield from _block(body, state, maybe)
            yield from _block(node.otherwise, state, maybe)
        case Loop():
            yield from _block(node.asks, state, _asked(place, "until" if node.until else "while"))
            yield from _block(node.body, state, maybe)
        case For():
            yield from _inside(node.words or (), state, place)
            state.scope.variables[node.variable] = UNKNOWN
            inside = replace(place, sure=place.sure and not node.selects, last=False, asked="", negated=False)
            yield from _block(node.body, state, inside)
        case Counted():
            yield from _block(node.body, state, replace(place, last=False, asked="", negated=False))
        case CaseClause():
            yield from _inside((node.subject,), state, place)
            for choice in node.choices:
                yield from _inside(choice.patterns, state, maybe)
                yield from _block(choice.body, state, maybe)
        case Function():
            state.functions[node.name] = node.body
        case Redirected():
            yield from _inside((one.target for one in node.redirections), state, place)
            yield from _node(node.node, state, place)


def _asked(place: _Place, how: str) -> _Place:
    """In a condition a command is only asked whether it succeeds."""
    return replace(place, last=False, guarded=True, asked=how, negated=False)


def _output(words: tuple[str, ...], stdin: str) -> str:
    """What a command passes on, if that is known."""
    if words[0] in PRINTS:
        return " ".join(words[1:])
    return stdin if words[0] in PASSES_ON else ""


def _ends_script(node: Node) -> bool:
    """`|| exit 1` makes a failure count, also at the end of a group."""
    match node:
        case Simple(words) if words:
            return words[0].plain == "exit" and [word.plain for word in words[1:2]] != ["0"]
        case Group(body) if body:
            return _ends_script(body[-1].parts[-1][1].stages[-1])
    return False


def _simple(node: Simple, state: _State, place: _Place) -> Iterator[ShellCommand]:
    """A command without its assignments and redirections, and whatever runs inside its words."""
    retried = place.asked == ("while" if place.negated else "until")
    certainty: Certainty = "will" if place.sure else "may"
    fatal = place.sure and not place.asked and (place.last or (state.exits and not place.guarded))
    values = [one.value for one in node.assignments]
    targets = [one.document.word if one.document else one.target for one in node.redirections]
    for found in _inside((*values, *node.words, *targets), state, place):
        yield replace(found, retried=retried)
    words = _words(node, state)
    if not node.words or (node.words[0].plain in DECLARES):
        state.scope.assign(node.assignments)
    stdin = document_of(node.redirections, state.scope)
    if words and words[0] in state.functions:
        yield from _called(words, state, place)
        return
    for found in _ran(words, stdin, state):
        sure: Certainty = found.certainty if place.sure else certainty
        yield replace(found, certainty=sure, fatal=found.fatal and fatal, retried=retried)


def _words(node: Simple, state: _State) -> list[str]:
    given = list(node.words)
    while given and given[0].plain in PREFIXES:
        given = given[1:]
    if given and given[0].plain == "[[":
        return [text_of(word, state.scope) for word in given]
    return [text for word in given for text in fields(word, state.scope)]


def _called(words: list[str], state: _State, place: _Place) -> Iterator[ShellCommand]:
    """The commands of a function, with the arguments that it is called with; none of one that calls itself."""
    name, *arguments = words
    state.called.append(name)
    if name in state.within or len(state.within) > DEPTH_MAX or len(state.called) > CALLS_MAX:
        return
    inner = replace(state, scope=state.scope.call(tuple(arguments)), within=(*state.within, name))
    yield from _node(state.functions[name], inner, place)
    state.exits = inner.exits


def _inside(words: Iterable[Word], state: _State, place: _Place) -> Iterator[ShellCommand]:
    """Commands in `$(...)` run, and their failure is mostly lost."""
    for word in words:
        for piece in word.pieces:
            match piece:
                case Substitution(body) if state.depth < DEPTH_MAX:
                    inner = replace(state, scope=state.scope.copy(), exits=False, depth=state.depth + 1)
                    for found in _block(body, inner, _Place(sure=place.sure)):
                        yield replace(found, fatal=False, retried=False)
                case Variable(word=Word() as default):
                    yield from _inside((default,), state, place)
                case OtherExpansion(inside):
                    yield from _inside(inside, state, place)


def _ran(words: list[str], stdin: str, state: _State) -> Iterator[ShellCommand]:
    words = _unwrapped(words)
    if not words:
        return
    if words[0] == "set":
        state.exits = errexit(words[1:], before=state.exits)
    script, exits = script_of(words)
    if script is not None:
        yield from commands_in(script, state.scope.variables, exits=exits, depth=state.depth + 1)
    else:
        yield ShellCommand(tuple(words), stdin=stdin)


def _unwrapped(words: list[str]) -> list[str]:
    """What `timeout 60`, `env A=b` and `xargs -n1` run; xargs adds words that only a run would tell."""
    match words:
        case ["timeout", "-k" | "-s", _, *rest]:
            return _unwrapped(["timeout", *rest])
        case ["env", *rest]:
            start = next((index for index, word in enumerate(rest) if not re.search("=|^-", word)), len(rest))
            return _unwrapped(rest[start:])
        case ["timeout", *rest]:
            plain = [index for index, word in enumerate(rest) if not word.startswith("-")]
            return _unwrapped(rest[plain[0] + 1 :]) if plain else []
        case ["xargs", *rest]:
            start = next((index for index, word in enumerate(rest) if re.fullmatch(r"[a-z][\w./-]*", word)), len(rest))
            return [*rest[start:], UNKNOWN] if rest[start:] else []
    return words
