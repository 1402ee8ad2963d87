"""How a script goes: whether it ends, with which code, what it prints last, and what it waits for.

Runs its tree; only `ask` knows the result of a command. Unknown programs are assumed to succeed where that decides
nothing, and make the outcome unknown where it does. Time passes where the script sleeps or waits (`process`).
"""

from __future__ import annotations

import glob
import re
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from functools import partial

from seatrial.kinds.scripts.expansion import UNKNOWN, Scope, document_of, fields, text_of
from seatrial.kinds.scripts.invoking import guarded, in_subshell, or_empty, run_command, substituted, total_of, value_of
from seatrial.kinds.scripts.parser import DECLARES, parse
from seatrial.kinds.scripts.process import Endless, Journal, Later, Run, Undecided
from seatrial.kinds.scripts.run_state import Ask, Course, Exited, LoopLeft, Returned, RunState
from seatrial.kinds.scripts.syntax import (
    AndOr,
    Arithmetic,
    Block,
    CaseClause,
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
    Redirection,
    Simple,
    Substitution,
    Word,
    nodes_in,
)
from seatrial.model import lazy_re

TURNS_MAX = 2_000
"""Of all loops of a script together; one that goes on for longer is not followed."""
WRITING_TURNS_MAX = 3
"""Of a loop that comes back to where it was and changes something each time."""
DEPTH_MAX = 60
"""Of commands in commands and in functions; what goes deeper is not followed."""
_DEFAULTED = lazy_re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*):?=")
_RANGE = lazy_re.compile(r"\{(\d+)\.\.(\d+)\}")
_NOWHERE = frozenset(("/dev/null", "/dev/stderr"))


def course(
    script: str | tuple[str, ...],
    env: Mapping[str, str],
    ask: Ask,
    *,
    run: Run | None = None,
    elsewhere: frozenset[str] | None = None,
    exits: bool = False,
    mounted: Callable[[str], str | None] = lambda path: None,
) -> Course | None:
    """How a script, or a command line, goes; None where only a real run would tell.

    `elsewhere` are the variables that others set, if known.
    """
    read = parse(script) if isinstance(script, str) else None
    if read is not None and not read.is_whole:
        return None
    state = _state(script, env, ask, run or Run(Journal(0.0), 0.0), elsewhere, exits, mounted)
    try:
        code = _block(read.body, state) if read is not None else run_command(tuple(script), "", (), state)
    except Exited as ended:
        code = ended.code
    except Endless:
        return _not_ended(state, None)
    except Later:
        return _not_ended(state, state.run.at_seconds)
    except (Undecided, LoopLeft, Returned):
        return None
    if state.run.is_ahead:
        return _not_ended(state, state.run.at_seconds)
    missing = tuple(dict.fromkeys(state.missing)) if code else ()
    return Course(code or 0, state.says, missing, state.unset, in_time=bool(code and (missing or state.in_time)))


def _state(
    script: str | tuple[str, ...],
    env: Mapping[str, str],
    ask: Ask,
    run: Run,
    elsewhere: frozenset[str] | None,
    exits: bool,
    mounted: Callable[[str], str | None],
) -> RunState:
    own: set[str] = set()
    if isinstance(script, str):
        nodes = list(nodes_in(parse(script).body))
        own = {one.name for node in nodes if isinstance(node, Simple) for one in node.assignments}
        own -= frozenset(_DEFAULTED.findall(script)) | (elsewhere or frozenset())
    scope = Scope(dict(env))
    own = own if elsewhere is not None else set()
    state = RunState(ask, run, frozenset(own), scope, _block, _node, exits, mounted=mounted)
    scope.unset = lambda name: or_empty(name, state)
    scope.total = lambda text: total_of(text, state)
    scope.substitute = lambda block: substituted(block, state)
    return state


def _not_ended(state: RunState, until_seconds: float | None) -> Course:
    return Course(None, state.says, tuple(dict.fromkeys(state.missing)), state.unset, until_seconds)


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
        code = guarded(partial(_pipeline, pipeline, state), state, index < end or pipeline.negated)
        state.last = code
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


def _pipeline(pipeline: Pipeline, state: RunState) -> int | None:
    code = _piped(pipeline, state) if len(pipeline.stages) > 1 else _node(pipeline.stages[0], state, ())
    return code if not pipeline.negated or code is None else int(not code)


def _piped(pipeline: Pipeline, state: RunState) -> int | None:
    """The code of the last stage; with `pipefail`, of the last that fails."""
    code: int | None = None
    failed: int | None = None
    feeder: tuple[str, ...] = ()
    stdin, out = state.stdin, state.out
    try:
        for index, stage in enumerate(pipeline.stages):
            last = index == len(pipeline.stages) - 1
            state.ran, state.out = (), out if last else []
            code = in_subshell(partial(_node, stage, state, feeder), state)
            failed = code or failed
            feeder = state.ran if isinstance(stage, Simple) else ()
            state.stdin = "".join(state.out)
    finally:
        state.stdin, state.out = stdin, out
    return failed if state.pipefail and failed else code


def _node(node: Node, state: RunState, feeder: tuple[str, ...]) -> int | None:
    match node:
        case Simple():
            return _simple(node, state, feeder)
        case Group(body, subshell):
            return in_subshell(partial(_block, body, state), state) if subshell else _block(body, state)
        case If():
            chosen = next((body for asks, body in node.branches if _holds(asks, state)), node.otherwise)
            return _block(chosen, state)
        case Loop():
            return _looped(partial(_loop, node, state), state)
        case For():
            return _looped(partial(_for, node, state), state)
        case CaseClause():
            return _case(node, state)
        case Function():
            state.functions[node.name] = node.body
            return 0
        case Redirected():
            return _redirected(node.redirections, partial(_node, node.node, state, feeder), state)
        case Arithmetic():
            return int(not value_of(node.text, state))
        case Counted():
            return _looped(partial(_counted, node, state), state)


def _redirected(redirections: tuple[Redirection, ...], run: Callable[[], int | None], state: RunState) -> int | None:
    """Run what reads from or writes into files."""
    stdin, out = state.stdin, state.out
    if given := _input(redirections, state):
        state.stdin = given
    state.out = []
    try:
        return run()
    finally:
        printed, state.out, state.stdin = "".join(state.out), out, stdin
        _print(printed, redirections, state)


def _input(redirections: tuple[Redirection, ...], state: RunState) -> str:
    """What here-documents, here-strings and files feed."""
    for one in redirections:
        if one.operator == "<":
            found = state.file(text_of(one.target, state.scope))
            return UNKNOWN if found is None else found
    return document_of(redirections, state.scope)


def _print(text: str, redirections: tuple[Redirection, ...], state: RunState) -> None:
    """Put what is printed where it belongs."""
    for one in redirections:
        if one.operator in (">", ">>", ">|", "&>", "&>>") and one.descriptor in ("", "1"):
            path = text_of(one.target, state.scope)
            if path not in _NOWHERE:
                before = (state.file(path) or "") if one.operator.endswith(">>") else ""
                state.files[path] = before + text
            return
        if one.operator == ">&" and one.descriptor in ("", "1"):
            return
    state.out.append(text)


def _holds(asks: Block, state: RunState) -> bool:
    code = guarded(partial(_block, asks, state), state, True)
    if code is None:
        raise Undecided
    return code == 0


def _looped(run: Callable[[], int | None], state: RunState) -> int | None:
    """Run a loop. Its turns are seen again from their start when something changes."""
    before = state.run.turn
    try:
        return run()
    finally:
        state.run.turn = before


def _loop(loop: Loop, state: RunState) -> int | None:
    code: int | None = 0
    writing = 0
    while True:
        before, sends, fresh = dict(state.scope.variables), state.sends, state.run.is_fresh
        state.run.turn = state.run.place
        if _holds(loop.asks, state) == loop.until:
            return code
        how, code = _turn(loop.body, state)
        if how == "break":
            return 0
        if state.scope.variables == before and fresh:
            writing += state.sends != sends
            if state.sends == sends or writing >= WRITING_TURNS_MAX:
                state.run.block()


def _for(loop: For, state: RunState) -> int | None:
    if loop.words is None or loop.selects:
        raise Undecided
    words = [text for word in loop.words for text in _listed(word, state)]
    if any(UNKNOWN in word or re.search(r"[*?{]", word) for word in words):
        raise Undecided
    code: int | None = 0
    for item in words:
        state.scope.variables[loop.variable] = item
        state.run.turn = state.run.place
        how, code = _turn(loop.body, state)
        if how == "break":
            break
    return code


def _listed(word: Word, state: RunState) -> list[str]:
    found = _RANGE.fullmatch(word.plain)
    if found is None:
        return fields(word, state.scope)
    first, last = int(found[1]), int(found[2])
    step = 1 if last >= first else -1
    return [str(number) for number in range(first, last + step, step)][: TURNS_MAX + 1]


def _counted(loop: Counted, state: RunState) -> int | None:
    begin, asks, step = [*loop.header.split(";"), "", ""][:3]
    value_of(begin, state)
    code: int | None = 0
    while not asks.strip() or value_of(asks, state):
        state.run.turn = state.run.place
        how, code = _turn(loop.body, state)
        if how == "break":
            return 0
        value_of(step, state)
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
        if left.levels > 1:
            raise LoopLeft(left.how, left.levels - 1) from None
        return left.how, 0


def _case(case: CaseClause, state: RunState) -> int | None:
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
    if not words:
        state.last = 0
        state.scope.assign(node.assignments)
        substituted = any(isinstance(p, Substitution) for one in node.assignments for p in one.value.pieces)
        return state.last if substituted else 0
    if words[0] in DECLARES:
        return _declare(node, words, state)
    stdin = _input(node.redirections, state) or state.stdin
    run = partial(run_command, words, stdin, feeder, state)
    return _redirected(node.redirections, run, state) if node.redirections else run()


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
