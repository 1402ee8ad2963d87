"""How a script goes: whether it ends, with which code, what it prints last, and what it waits for.

Runs its tree with nobody but `ask` to know what a command comes to. Programs that are not known are taken to succeed
where that decides nothing, and to make the outcome unknown where it does. Time does not pass: a loop that comes back to
where it was has no end.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Literal

from msgspec import Struct

from seatrial.kinds.scripts.tree import (
    AndOr,
    Block,
    For,
    Group,
    If,
    Loop,
    Node,
    Pipeline,
    Simple,
    tree,
)
from seatrial.kinds.scripts.words import HERE, UNKNOWN, Token, filled
from seatrial.model.resource import Ref

TURNS_MAX = 2_000
"""Of all loops of a script together; one that goes on for longer is not followed."""
QUIET = frozenset((":", "date", "echo", "printf", "sleep", "true", "wait"))
DECLARES = frozenset(("declare", "export", "local", "readonly"))
UNREAD = frozenset(
    (".", "eval", "exec", "getopts", "let", "mapfile", "read", "return", "shift", "source", "trap", "unset")
)
TESTS = frozenset(("[", "[[", "test"))
NUMBERS: dict[str, Callable[[int, int], bool]] = {
    "-eq": int.__eq__,
    "-ne": int.__ne__,
    "-lt": int.__lt__,
    "-le": int.__le__,
    "-gt": int.__gt__,
    "-ge": int.__ge__,
}
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.S)
_ASSIGNED = re.compile(r"(?:^|[\s;&(])([A-Za-z_][A-Za-z0-9_]*)=", re.M)
_REDIRECTION = re.compile(r"(?:\d*|&)(?:>>?|<)&?(.*)", re.S)
_DEFAULTED = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*):?=")
_PLAIN = re.compile(r"\$(?:\{([A-Za-z_][A-Za-z0-9_]*)\}|([A-Za-z_][A-Za-z0-9_]*))")
_EXITS = re.compile(r"-[a-z]*e[a-z]*|errexit")
_STRICT = re.compile(r"-[a-z]*u[a-z]*|nounset")
_INTEGER = re.compile(r"\s*[-+]?\d+\s*")
_SUM = re.compile(r"\$\(\(\s*\$?(\w+)\s*([-+*])\s*\$?(\w+)\s*\)\)")


class Reply(Struct, frozen=True):
    """What a command comes to."""

    code: int | None = 0
    """None where only a run would tell."""
    says: str = ""
    missing: Ref | None = None
    """What it fails for as long as there is none of."""


class Course(Struct, frozen=True):
    """How a script goes."""

    code: int | None
    """With which it ends; None where it does not."""
    says: str = ""
    """The last words of a command that failed."""
    waits_for: tuple[Ref, ...] = ()
    """What it looks for again and again."""
    unset: str = ""
    """A variable that is compared before anything is put into it."""


Ask = Callable[[tuple[str, ...], str, tuple[str, ...]], Reply]
"""What comes of a command, by its words, what is fed to it, and the command that feeds it."""


class _Ended(Exception):
    def __init__(self, code: int) -> None:
        self.code = code


class _Endless(Exception):
    """A loop came back to where it was."""


class _Unknown(Exception):
    """Only a run would tell."""


class _Left(Exception):
    """A loop was left, or goes on with its next turn."""

    def __init__(self, how: Literal["break", "continue"]) -> None:
        self.how = how


class _State(Struct):
    ask: Ask
    own: frozenset[str]
    """Variables that the script itself sets somewhere, and nobody else."""
    variables: dict[str, str]
    documents: list[str]
    exits: bool
    """`set -e`"""
    strict: bool = False
    """`set -u`"""
    says: str = ""
    unset: str = ""
    blank: str = ""
    """The last variable that was read and has nothing in it."""
    missing: list[Ref] = []
    last: int | None = 0
    turns: int = 0


def course(
    script: str, env: Mapping[str, str], ask: Ask, *, elsewhere: frozenset[str] | None = None, exits: bool = False
) -> Course | None:
    """How a script goes; None where only a run would tell. `elsewhere` are the variables that others set, if known."""
    read = tree(script)
    if read is None:
        return None
    own = frozenset(_ASSIGNED.findall(script)) - frozenset(_DEFAULTED.findall(script)) - (elsewhere or frozenset())
    state = _State(ask, own if elsewhere is not None else frozenset(), dict(env), [*reversed(read.documents)], exits)
    try:
        code = _block(read.body, state)
    except _Ended as ended:
        code = ended.code
    except _Endless:
        return Course(None, state.says, tuple(dict.fromkeys(state.missing)), state.unset)
    except (_Unknown, _Left):
        return None
    if state.missing:
        return None  # It came to an end without what it looked for, which time may bring.
    return Course(code or 0, state.says, (), state.unset)


def _block(block: Block, state: _State, *, asked: bool = False) -> int | None:
    """The code of the last command."""
    code: int | None = 0
    for statement in block:
        code = state.last = _statement(statement, state, asked=asked)
    return code


def _statement(statement: AndOr, state: _State, *, asked: bool) -> int | None:
    if statement.background:
        return 0
    code: int | None = 0
    ran = 0
    for index, (operator, pipeline) in enumerate(statement.parts):
        if operator and code is None:
            raise _Unknown
        if (operator == "&&" and code) or (operator == "||" and not code):
            continue
        code, ran = _pipeline(pipeline, state), index
    # `set -e` looks at the last of `a && b`, and at nothing that is asked or negated.
    counts = ran == len(statement.parts) - 1 and not statement.parts[-1][1].negated
    if code and state.exits and counts and not asked:
        raise _Ended(code)
    return code


def _pipeline(pipeline: Pipeline, state: _State) -> int | None:
    code: int | None = 0
    feeder: tuple[str, ...] = ()
    for stage in pipeline.stages:
        code = _node(stage, state, feeder)
        feeder = _run_words(stage.words, state)[0] if isinstance(stage, Simple) else ()
    if len(pipeline.stages) > 1 and code == 0:
        code = None  # What the last stage makes of its input is its own affair.
    return code if not pipeline.negated or code is None else int(not code)


def _node(node: Node, state: _State, feeder: tuple[str, ...]) -> int | None:
    match node:
        case Simple():
            return _simple(node, state, feeder)
        case Group():
            return _block(node.body, state)
        case If():
            chosen = next((body for asks, body in node.branches if _holds(asks, state)), node.otherwise)
            return _block(chosen, state)
        case Loop():
            return _loop(node, state)
        case For():
            return _for(node, state)


def _holds(asks: Block, state: _State) -> bool:
    code = _block(asks, state, asked=True)
    if code is None:
        raise _Unknown
    return code == 0


def _loop(loop: Loop, state: _State) -> int:
    while True:
        before = dict(state.variables)
        if _holds(loop.asks, state) == loop.until or _turn(loop.body, state) == "break":
            return 0
        if UNKNOWN in "".join(state.variables.values()):
            raise _Unknown
        if state.variables == before:
            raise _Endless


def _for(loop: For, state: _State) -> int:
    words = [_value(token.text, state) for token in loop.words]
    if any(UNKNOWN in word or re.search(r"[*?{]", word) for word in words):
        raise _Unknown
    for item in " ".join(words).split():
        state.variables[loop.variable] = item
        if _turn(loop.body, state) == "break":
            break
    return 0


def _turn(body: Block, state: _State) -> str:
    """One turn of a loop, and how it was left."""
    state.turns += 1
    if state.turns > TURNS_MAX:
        raise _Unknown
    try:
        _block(body, state)
    except _Left as left:
        return left.how
    return ""


def _simple(node: Simple, state: _State, feeder: tuple[str, ...]) -> int | None:
    words, stdin = _run_words(node.words, state, act=True)
    match words:
        case ():
            return 0
        case ("exit",) if state.last is not None:
            raise _Ended(state.last)
        case ("exit", code) if code.isdigit():
            raise _Ended(int(code))
        case ("break" | "continue" as how,):
            raise _Left(how)
        case ("exit" | "break" | "continue", *_):
            raise _Unknown
        case ("set", *flags):
            return _set(flags, state)
        case ("false",):
            return 1
        case ("sleep", "infinity" | "inf") | ("tail", "-f", *_):
            raise _Endless
    if words[0] in UNREAD:
        raise _Unknown
    if words[0] in DECLARES:
        state.variables.update({f[1]: f[2] for word in words[1:] if (f := _ASSIGNMENT.fullmatch(word))})
        return 0
    if words[0] in QUIET:
        return 0
    return _test(words, state) if words[0] in TESTS else _asked(words, stdin, feeder, state)


def _asked(words: tuple[str, ...], stdin: str, feeder: tuple[str, ...], state: _State) -> int | None:
    reply = state.ask(words, stdin, feeder)
    state.says = reply.says or state.says
    state.missing.extend([reply.missing] if reply.missing else [])
    return reply.code


def _set(flags: list[str], state: _State) -> int:
    if "+o" in flags:
        raise _Unknown
    state.exits = (state.exits and "+e" not in flags) or any(_EXITS.fullmatch(flag) for flag in flags)
    state.strict = (state.strict and "+u" not in flags) or any(_STRICT.fullmatch(flag) for flag in flags)
    return 0


def _run_words(given: tuple[Token, ...], state: _State, *, act: bool = False) -> tuple[tuple[str, ...], str]:
    """The words of a command with its variables put in, and what is fed to it. Assignments are made if it is run."""
    words: list[str] = []
    stdin, target = "", ""
    for token in given:
        redirected = None if token.quoted else _REDIRECTION.fullmatch(token.text)
        assigned = _ASSIGNMENT.fullmatch(token.text) if not words and not target else None
        if target:
            target = ""
        elif token.text == HERE:
            stdin = state.documents.pop() if act and state.documents else ""
        elif token.text == "<<<":
            target = token.text
        elif redirected:
            target = "" if redirected[1] else token.text
        elif assigned:
            state.variables.update({assigned[1]: _value(assigned[2], state)} if act else {})
        else:
            text = _value(token.text, state)
            words.extend([text] if text or token.quoted or words[:1] == ["[["] else [])
    return tuple(words), stdin


def _value(text: str, state: _State) -> str:
    """A word with what is known put in; a variable that only the script sets, and has not yet, is empty."""
    return filled(
        _PLAIN.sub(lambda found: _or_empty(found, state), _SUM.sub(lambda s: _sum(s, state), text)), state.variables
    )


def _or_empty(found: re.Match[str], state: _State) -> str:
    name = found[1] or found[2]
    if name not in state.own or name in state.variables:
        return found[0]
    state.blank = name
    if state.strict:
        state.says, state.unset = f"{name}: unbound variable", name
        raise _Ended(1)
    return ""


def _sum(found: re.Match[str], state: _State) -> str:
    """Arithmetic takes a variable that is not set for 0."""
    left, right = (_number(found[place], state) for place in (1, 3))
    if left is None or right is None:
        return UNKNOWN
    return str({"+": left + right, "-": left - right, "*": left * right}[found[2]])


def _number(word: str, state: _State) -> int | None:
    text = word if word.isdigit() else state.variables.get(word, "" if word in state.own else UNKNOWN)
    return 0 if not text else int(text) if _INTEGER.fullmatch(text) else None


def _test(words: tuple[str, ...], state: _State) -> int | None:
    inner = words[1:-1] if words[0] != "test" else words[1:]
    if any(UNKNOWN in word for word in inner):
        return None
    if words[0] != "[[" and (fault := _fault(inner)):
        state.says, state.unset = f"{words[0]}: {fault}", state.blank
        return 2
    if inner[:1] == ("!",):
        code = _judged(inner[1:])
        return None if code is None else int(not code)
    return _judged(inner)


def _judged(inner: tuple[str, ...]) -> int | None:
    match inner:
        case (word,):
            return int(not word)
        case ("-z", word):
            return int(bool(word))
        case ("-n", word):
            return int(not word)
        case (left, "=" | "==", right):
            return int(left != right)
        case (left, "!=", right):
            return int(left == right)
        case (left, operator, right) if operator in NUMBERS:
            return int(not NUMBERS[operator](_as_number(left), _as_number(right)))
    return None


def _fault(inner: tuple[str, ...]) -> str:
    """What `[` says of a comparison that lacks a side, in the words of bash; its code is 2."""
    match inner:
        case (operator, _) if operator in NUMBERS:
            return f"{operator}: unary operator expected"
        case (word, operator) if operator in NUMBERS:
            return f"{word}: unary operator expected"
        case (left, operator, right) if operator in NUMBERS:
            wrong = [word for word in (left, right) if not _INTEGER.fullmatch(word)]
            return f"{wrong[0]}: integer expression expected" if wrong else ""
    return ""


def _as_number(word: str) -> int:
    """`[[` takes what is empty for 0."""
    return int(word) if _INTEGER.fullmatch(word) else 0
