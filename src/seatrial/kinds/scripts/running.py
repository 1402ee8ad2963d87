"""How a script goes: whether it ends, with which code, what it prints last, and what it waits for.

Runs its tree; only `ask` knows the result of a command. Unknown programs are assumed to succeed where that decides
nothing, and make the outcome unknown where it does. Time does not pass: a loop that comes back to the same state never
ends.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from functools import partial

from seatrial.kinds.scripts.conditions import INTEGER, fault_of, judged
from seatrial.kinds.scripts.expansion import UNKNOWN, Scope, document_of, errexit, fields, text_of
from seatrial.kinds.scripts.parser import DECLARES, parse
from seatrial.kinds.scripts.run_state import Ask, Course, Endless, Exited, LoopLeft, Returned, RunState, Undecided
from seatrial.kinds.scripts.syntax import (
    AndOr,
    Arithmetic,
    Block,
    Case,
    Choice,
    Counted,
    For,
    Function,
    Group,
    If,
    Literal,
    Loop,
    Node,
    Pipeline,
    Redirected,
    Simple,
    Substitution,
    Word,
    nodes_in,
)

TURNS_MAX = 2_000
"""Of all loops of a script together; one that goes on for longer is not followed."""
QUIET = frozenset((":", "date", "echo", "printf", "sleep", "true", "wait"))
UNREAD = frozenset(
    (".", "coproc", "eval", "exec", "getopts", "let", "mapfile", "read", "return", "shift", "source", "trap", "unset")
)
CALLS_MAX = 500
DEPTH_MAX = 60
"""Of commands in commands and in functions; what goes deeper is not followed."""
TESTS = frozenset(("[", "[[", "test"))
_DEFAULTED = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*):?=")
_STRICT = re.compile(r"-[a-z]*u[a-z]*|nounset")
_SUM = re.compile(r"\s*\$?(\w+)\s*([-+*])\s*\$?(\w+)\s*")


def course(
    script: str, env: Mapping[str, str], ask: Ask, *, elsewhere: frozenset[str] | None = None, exits: bool = False
) -> Course | None:
    """How a script goes; None where only a run would tell. `elsewhere` are the variables that others set, if known."""
    read = parse(script)
    if not read.is_whole:
        return None
    assigned = {one.name for node in nodes_in(read.body) if isinstance(node, Simple) for one in node.assignments}
    own = assigned - frozenset(_DEFAULTED.findall(script)) - (elsewhere or frozenset())
    scope = Scope(dict(env))
    state = RunState(ask, frozenset(own) if elsewhere is not None else frozenset(), scope, exits)
    scope.unset, scope.total = lambda name: _or_empty(name, state), lambda text: _sum(text, state)
    try:
        code = _block(read.body, state)
    except Exited as ended:
        code = ended.code
    except Endless:
        return Course(None, state.says, tuple(dict.fromkeys(state.missing)), state.unset)
    except (Undecided, LoopLeft, Returned):
        return None
    if state.missing:
        return None  # It came to an end without what it looked for, which time may bring.
    return Course(code or 0, state.says, (), state.unset)


def _block(block: Block, state: RunState) -> int | None:
    """The code of the last command."""
    code: int | None = 0
    state.depth += 1
    if state.depth > DEPTH_MAX:
        raise Undecided
    for statement in block:
        code = state.last = _statement(statement, state)
    state.depth -= 1
    return code


def _statement(statement: AndOr, state: RunState) -> int | None:
    if statement.background:
        return 0
    code: int | None = 0
    ran = 0
    end = len(statement.parts) - 1
    for index, (operator, pipeline) in enumerate(statement.parts):
        if operator and code is None:
            raise Undecided
        if (operator == "&&" and code) or (operator == "||" and not code):
            continue
        ran = index
        code = _guarded(partial(_pipeline, pipeline, state), state, index < end or pipeline.negated)
    # `set -e` looks at the last of `a && b`, and at nothing that is asked or negated.
    last = statement.parts[-1][1]
    if code and state.exits and ran == end and not last.negated and not state.guarded and _counts(last):
        raise Exited(code)
    return code


def _counts(pipeline: Pipeline) -> bool:
    """Whether `set -e` looks at the code of this, and not only at those of the commands in it."""
    match pipeline.stages:
        case (Simple(),) | (Group(subshell=True),):
            return True
        case (Redirected(node),):
            return isinstance(node, Group) and node.subshell
    return len(pipeline.stages) > 1


def _guarded(run: Callable[[], int | None], state: RunState, guarded: bool) -> int | None:
    """The code of what runs where `set -e` ignores failures."""
    before, state.guarded = state.guarded, state.guarded or guarded
    try:
        return run()
    finally:
        state.guarded = before


def _pipeline(pipeline: Pipeline, state: RunState) -> int | None:
    if len(pipeline.stages) == 1:
        code = _node(pipeline.stages[0], state, ())
    else:
        code = None
        feeder: tuple[str, ...] = ()
        for stage in pipeline.stages:
            state.ran = ()
            code = _subshell(partial(_node, stage, state, feeder), state)
            feeder = state.ran if isinstance(stage, Simple) else ()
        code = code or None  # What the last stage makes of its input is its own affair.
    return code if not pipeline.negated or code is None else int(not code)


def _subshell(run: Callable[[], int | None], state: RunState) -> int | None:
    """The code of what runs with variables and options of its own."""
    scope, exits, strict, depth = state.scope, state.exits, state.strict, state.depth
    state.scope = scope.copy()
    try:
        return run()
    except Exited as ended:
        return ended.code
    except LoopLeft:
        raise Undecided from None
    finally:
        state.scope, state.exits, state.strict, state.depth = scope, exits, strict, depth


def _node(node: Node, state: RunState, feeder: tuple[str, ...]) -> int | None:
    match node:
        case Simple():
            return _simple(node, state, feeder)
        case Group(body, subshell):
            return _subshell(partial(_block, body, state), state) if subshell else _block(body, state)
        case If():
            chosen = next((body for asks, body in node.branches if _holds(asks, state)), node.otherwise)
            return _block(chosen, state)
        case Loop():
            return _loop(node, state)
        case For():
            return _for(node, state)
        case Case():
            return _case(node, state)
        case Function():
            state.functions[node.name] = node.body
            return 0
        case Redirected():
            return _node(node.node, state, feeder)
        case Counted() | Arithmetic():
            raise Undecided


def _holds(asks: Block, state: RunState) -> bool:
    code = _guarded(partial(_block, asks, state), state, True)
    if code is None:
        raise Undecided
    return code == 0


def _loop(loop: Loop, state: RunState) -> int | None:
    code: int | None = 0
    while True:
        before = dict(state.scope.variables)
        if _holds(loop.asks, state) == loop.until:
            return code
        how, code = _turn(loop.body, state)
        if how == "break":
            return 0
        if UNKNOWN in "".join(state.scope.variables.values()):
            raise Undecided
        if state.scope.variables == before:
            raise Endless


def _for(loop: For, state: RunState) -> int | None:
    if loop.words is None or loop.selects:
        raise Undecided
    words = [text for word in loop.words for text in fields(word, state.scope)]
    if any(UNKNOWN in word or re.search(r"[*?{]", word) for word in words):
        raise Undecided
    code: int | None = 0
    for item in words:
        state.scope.variables[loop.variable] = item
        how, code = _turn(loop.body, state)
        if how == "break":
            break
    return code


def _turn(body: Block, state: RunState) -> tuple[str, int | None]:
    """How one turn of a loop was left, and the code of its last command."""
    state.turns += 1
    if state.turns > TURNS_MAX:
        raise Undecided
    depth = state.depth
    try:
        return "", _block(body, state)
    except LoopLeft as left:
        state.depth = depth
        return left.how, 0


def _case(case: Case, state: RunState) -> int | None:
    subject = text_of(case.subject, state.scope)
    for choice in case.choices:
        if any(_matches(subject, pattern) for pattern in choice.patterns):
            return _block(_chosen(choice), state)
    return 0


def _chosen(choice: Choice) -> Block:
    if choice.end != ";;":
        raise Undecided
    return choice.body


def _matches(subject: str, pattern: Word) -> bool:
    if pattern.plain == "*":
        return True
    known = "".join(
        glob.escape(piece.text) if piece.quoted else piece.text
        for piece in pattern.pieces
        if isinstance(piece, Literal)
    )
    if UNKNOWN in subject or not all(isinstance(piece, Literal) for piece in pattern.pieces):
        raise Undecided
    return fnmatchcase(subject, known)


def _simple(node: Simple, state: RunState, feeder: tuple[str, ...]) -> int | None:
    words = state.ran = _words(node, state)
    match words:
        case ():
            state.scope.assign(node.assignments)
            substituted = any(isinstance(p, Substitution) for one in node.assignments for p in one.value.pieces)
            return None if substituted else 0
        case ("exit",) if state.last is not None:
            raise Exited(state.last)
        case ("exit", code) if code.isdigit():
            raise Exited(int(code))
        case ("break" | "continue" as how,):
            raise LoopLeft(how)
        case ("return",) if state.hidden is not None:
            raise Returned(state.last)
        case ("return", code) if state.hidden is not None and code.isdigit():
            raise Returned(int(code))
        case ("exit" | "break" | "continue", *_):
            raise Undecided
        case ("set", *flags):
            return _set(flags, state)
        case ("false",):
            return 1
        case ("sleep", "infinity" | "inf") | ("tail", "-f", *_):
            raise Endless
    if words[0] in state.functions:
        return _call(words, state)
    if words[0] in UNREAD:
        raise Undecided
    if words[0] in DECLARES:
        return _declare(node, words, state)
    if words[0] in QUIET:
        return 0
    if words[0] in TESTS:
        return _test(words, state)
    return _asked(words, document_of(node.redirections, state.scope), feeder, state)


def _words(node: Simple, state: RunState) -> tuple[str, ...]:
    """The words of a command with its variables expanded; nothing is split in `[[`."""
    if node.words and node.words[0].plain == "[[":
        return tuple(text_of(word, state.scope) for word in node.words)
    return tuple(text for word in node.words for text in fields(word, state.scope))


def _declare(node: Simple, words: tuple[str, ...], state: RunState) -> int:
    names = [*(one.name for one in node.assignments), *(word for word in words[1:] if not word.startswith("-"))]
    if words[0] == "local" and state.hidden is not None:
        for name in names:
            state.hidden.setdefault(name, state.scope.variables.get(name))
            state.scope.variables[name] = UNKNOWN  # bash leaves it unset, dash as it was.
    state.scope.assign(node.assignments)
    return 0


def _call(words: tuple[str, ...], state: RunState) -> int | None:
    """Run a function with arguments and local variables of its own."""
    state.calls += 1
    if state.calls > CALLS_MAX:
        raise Undecided
    scope, hidden, depth = state.scope, state.hidden, state.depth
    state.scope, state.hidden = scope.call(words[1:]), {}
    try:
        return _node(state.functions[words[0]], state, ())
    except Returned as returned:
        return returned.code
    finally:
        for name, value in state.hidden.items():
            if value is None:
                scope.variables.pop(name, None)
            else:
                scope.variables[name] = value
        state.scope, state.hidden, state.depth = scope, hidden, depth


def _asked(words: tuple[str, ...], stdin: str, feeder: tuple[str, ...], state: RunState) -> int | None:
    reply = state.ask(words, stdin, feeder)
    state.says = reply.says or state.says
    state.missing.extend([reply.missing] if reply.missing else [])
    return reply.code


def _set(flags: list[str], state: RunState) -> int:
    if "+o" in flags:
        raise Undecided
    state.exits = errexit(flags, before=state.exits)
    state.strict = (state.strict and "+u" not in flags) or any(_STRICT.fullmatch(flag) for flag in flags)
    return 0


def _or_empty(name: str, state: RunState) -> str:
    """A variable that only the script sets, and has not yet, is empty."""
    if name not in state.own:
        return UNKNOWN
    state.blank = name
    if state.strict:
        state.says, state.unset = f"{name}: unbound variable", name
        raise Exited(1)
    return ""


def _sum(text: str, state: RunState) -> str:
    """Arithmetic takes a variable that is not set for 0."""
    found = _SUM.fullmatch(text)
    left, right = (_number(found[place], state) for place in (1, 3)) if found else (None, None)
    if found is None or left is None or right is None:
        return UNKNOWN
    return str({"+": left + right, "-": left - right, "*": left * right}[found[2]])


def _number(word: str, state: RunState) -> int | None:
    text = word if word.isdigit() else state.scope.variables.get(word, "" if word in state.own else UNKNOWN)
    return 0 if not text else int(text) if INTEGER.fullmatch(text) else None


def _test(words: tuple[str, ...], state: RunState) -> int | None:
    inner = words[1:-1] if words[0] != "test" else words[1:]
    if any(UNKNOWN in word for word in inner):
        return None
    if words[0] != "[[" and (fault := fault_of(inner)):
        state.says, state.unset = f"{words[0]}: {fault}", state.blank
        return 2
    return judged(inner, pattern=words[0] == "[[")
