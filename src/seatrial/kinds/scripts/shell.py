"""Shell scripts in containers: which commands run, and whether the container fails where one of them does.

Knows the grammar of sh, and no command by name. Functions are read where they stand, as if they were called there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Literal

from msgspec import Struct

from seatrial.kinds.scripts.words import (
    HERE,
    UNKNOWN,
    Token,
    filled,
    substitutions,
    tokens,
    without_heredocs,
)

Certainty = Literal["will", "may"]

DEPTH_MAX = 8
"""Of scripts inside scripts: `sh -c "sh -c ..."`, `$( $( ) )`."""

SHELLS = ("sh", "bash", "ash", "dash", "zsh", "ksh")
ASKS = ("if", "elif", "while", "until")
"""After these a command is only asked whether it succeeds."""
CHOOSES = ("for", "case", "select")
BRANCHES = ("then", "else")
CLOSERS = ("fi", "done", "esac", "}")
PREFIXES = ("time", "exec", "command", "builtin", "sudo", "nohup", "eval")
PRINTS = ("echo", "printf")
PASSES_ON = ("cat", "envsubst", "sed", "tee")
UNSURE = (*BRANCHES, "do", "case", "select")
"""Blocks whose commands may not run."""

_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.S)
_REDIRECTION = re.compile(r"(?:\d*|&)(?:>>?|<)&?(.*)", re.S)
_EXITS = re.compile(r"-[a-z]*e[a-z]*|errexit")


class Command(Struct, frozen=True):
    """One simple command of a script."""

    words: tuple[str, ...]
    """Variables are put in where they are known; `UNKNOWN` stands for the rest."""
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


class _Statement(Struct, frozen=True):
    """Pipelines joined by `&&` and `||`; each with the operator before it."""

    parts: tuple[tuple[str, tuple[tuple[Token, ...], ...]], ...]
    background: bool


class _State(Struct):
    """Where in a script we are."""

    variables: dict[str, str]
    documents: list[str]
    exits: bool
    """`set -e`: a command that fails ends the script."""
    depth: int
    blocks: list[str] = []
    """Open `if`, `then`, `for`, `do`..., innermost last."""


def commands_of(words: list[str], env: Mapping[str, str]) -> Iterator[Command]:
    """The commands that a container runs whose command line is `words`."""
    script, exits = script_of(words)
    if script is None:
        yield Command(tuple(words))
    else:
        yield from commands_in(script, env, exits=exits)


def commands_in(script: str, env: Mapping[str, str], *, exits: bool = False, depth: int = 0) -> Iterator[Command]:
    """The commands of a script, in order."""
    if depth > DEPTH_MAX:
        return
    text, documents = without_heredocs(script)
    state = _State(dict(env), documents, exits, depth)
    statements = list(_statements(tokens(text)))
    for index, statement in enumerate(statements):
        yield from _read(statement, state, last=index == len(statements) - 1)


def script_of(words: list[str]) -> tuple[str | None, bool]:
    """The script after `sh -c`, and whether its options end it at the first failure."""
    if not words or words[0].rpartition("/")[2] not in SHELLS:
        return None, False
    exits = False
    for index, word in enumerate(words[1:], 1):
        exits = exits or bool(_EXITS.fullmatch(word))
        if re.fullmatch(r"-[a-z]*c[a-z]*", word):
            rest = [other for other in words[index + 1 :] if not other.startswith("-")]
            return (rest[0] if rest else None), exits
    return None, exits


def _statements(found: list[Token]) -> Iterator[_Statement]:
    parts: list[tuple[str, list[list[Token]]]] = [("", [[]])]
    for token in found:
        pipeline = parts[-1][1]
        if not token.operator:
            pipeline[-1].append(token)
        elif token.text in ("|", "|&"):
            pipeline.append([])
        elif token.text in ("&&", "||"):
            parts.append((token.text, [[]]))
        elif token.text == "\n" and not pipeline[-1] and (len(parts) > 1 or len(pipeline) > 1):
            continue  # A line that ends in an operator goes on in the next.
        else:
            yield from _statement(parts, background=token.text == "&")
            parts = [("", [[]])]
    yield from _statement(parts, background=False)


def _statement(parts: list[tuple[str, list[list[Token]]]], *, background: bool) -> Iterator[_Statement]:
    """One statement, or none on an empty line."""
    if any(command for _, pipeline in parts for command in pipeline):
        frozen = tuple((operator, tuple(tuple(command) for command in pipeline)) for operator, pipeline in parts)
        yield _Statement(frozen, background)


def _read(statement: _Statement, state: _State, *, last: bool) -> Iterator[Command]:
    for place, (operator, pipeline) in enumerate(statement.parts):
        later = [(other, pipe[0]) for other, pipe in statement.parts[place + 1 :]]
        rescue = next((command for other, command in later if other == "||"), None)
        gives_up = rescue is not None and _ends_script(rescue)
        saved = (rescue is not None and not gives_up) or statement.background
        feeder: tuple[str, ...] = ()
        poured = ""
        passed = feeder, poured
        for stage, command in enumerate(pipeline):
            negated, asked, rest = _enter(list(command), state)
            sure = operator != "||" and not any(block in UNSURE for block in state.blocks)
            ends = (last and not state.blocks) or (state.exits and not later) or gives_up
            fatal = sure and ends and not (saved or negated or asked or stage < len(pipeline) - 1)
            retried = asked and not saved and state.blocks[-1] == ("while" if negated else "until")
            for found in _simple(rest, state):
                certainty: Certainty = "will" if sure and found.certainty == "will" else "may"
                stdin = found.stdin or poured
                yield Command(found.words, certainty, found.fatal and fatal, stdin, found.feeder or feeder, retried)
                passed = found.words, _output(found.words, stdin)
            feeder, poured = passed


def _output(words: tuple[str, ...], stdin: str) -> str:
    """What a command passes on, where that can be told."""
    if words[0] in PRINTS:
        return " ".join(words[1:])
    return stdin if words[0] in PASSES_ON else ""


def _ends_script(command: tuple[Token, ...]) -> bool:
    """`|| exit 1` makes a failure count."""
    words = [token.text for token in command]
    return words[:1] == ["exit"] and words[1:2] != ["0"]


def _enter(rest: list[Token], state: _State) -> tuple[bool, bool, list[Token]]:
    """Take off the words that open and close blocks. Whether a command is negated, or only asked; what is left."""
    negated = False
    while rest and not rest[0].quoted:
        word = rest[0].text
        if word in ASKS or word in CHOOSES or word == "{":
            _open(word, state)
            if word in CHOOSES:
                return negated, True, _header(rest[1:], state)
        elif word in BRANCHES or word == "do":
            loops = bool(state.blocks) and state.blocks[-1] == "for"
            _close(state)
            state.blocks.append("loop" if loops else word)
        elif word in CLOSERS:
            _close(state)
        elif word == "!":
            negated = True
        elif word not in PREFIXES:
            break
        rest = rest[1:]
    return negated, bool(state.blocks) and state.blocks[-1] in ASKS, rest


def _open(word: str, state: _State) -> None:
    if word == "elif":
        _close(state)
    state.blocks.append(word)


def _close(state: _State) -> None:
    if state.blocks:
        state.blocks.pop()


def _header(rest: list[Token], state: _State) -> list[Token]:
    """`for X in ...`: what is substituted there runs; the variable is one of many."""
    if rest and re.fullmatch(r"\w+", rest[0].text):
        state.variables[rest[0].text] = UNKNOWN
    return [Token(f"_={token.text}") for token in rest[1:]]


def _simple(given: list[Token], state: _State) -> Iterator[Command]:
    """A command without its assignments and redirections, and whatever runs inside its words."""
    words: list[str] = []
    stdin = ""
    target = ""
    for token in given:
        for _, inner in substitutions(token.text):
            yield from _substituted(inner, state)
        text = filled(token.text, state.variables)
        assigned = _ASSIGNMENT.fullmatch(token.text) if not words and not target else None
        redirected = None if token.quoted else _REDIRECTION.fullmatch(token.text)
        if target:
            stdin, target = (text if target == "<<<" else stdin), ""
        elif token.text == HERE:
            stdin = filled(state.documents.pop(0), state.variables) if state.documents else ""
        elif token.text == "<<<":
            target = token.text
        elif redirected:
            target = "" if redirected[1] else token.text
        elif assigned:
            state.variables[assigned[1]] = filled(assigned[2], state.variables)
        else:
            words.append(text)
    yield from _ran(words, stdin, state)


def _substituted(script: str, state: _State) -> Iterator[Command]:
    """Commands in `$(...)` run, and their failure is mostly lost. `$((...))` is arithmetic."""
    for command in () if script.startswith("(") else commands_in(script, state.variables, depth=state.depth + 1):
        yield Command(command.words, command.certainty, False, command.stdin, command.feeder)


def _ran(words: list[str], stdin: str, state: _State) -> Iterator[Command]:
    words = _unwrapped(words)
    if not words:
        return
    if words[0] == "set" and any(_EXITS.fullmatch(word) for word in words[1:]):
        state.exits = True
    elif words[0] == "set" and "+e" in words:
        state.exits = False
    script, exits = script_of(words)
    if script is not None:
        yield from commands_in(script, state.variables, exits=exits, depth=state.depth + 1)
    else:
        yield Command(tuple(words), stdin=stdin)


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
