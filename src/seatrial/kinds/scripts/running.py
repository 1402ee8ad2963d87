"""How a script goes: whether it ends, with which code, what it prints last, and what it waits for.

Runs its tree; only `ask` knows the result of a command. Unknown programs are assumed to succeed where that decides
nothing, and make the outcome unknown where it does. Time passes where the script sleeps or waits (`process`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial

from seatrial.kinds.scripts.expansion import TEXT_MAX, UNKNOWN, Scope, document_of, fields, pattern_of, text_of
from seatrial.kinds.scripts.invoking import (
    file_of,
    guarded,
    in_subshell,
    or_empty,
    refused_expansion,
    run_command,
    substituted,
    total_of,
    value_of,
)
from seatrial.kinds.scripts.looping import count, go_through, holds, looped, repeat
from seatrial.kinds.scripts.parser import DECLARES, parse
from seatrial.kinds.scripts.patterns import is_alike
from seatrial.kinds.scripts.process import Endless, Journal, Later, Run, Undecided
from seatrial.kinds.scripts.run_state import Ask, Course, Exited, LoopLeft, Returned, RunState, Unfollowed
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
    Loop,
    Node,
    OtherExpansion,
    Pipeline,
    Redirected,
    Redirection,
    Simple,
    Substitution,
    Word,
    nodes_in,
)
from seatrial.kinds.scripts.word_parser import LINE_MAX
from seatrial.model import lazy_re
from seatrial.model.timeline import ScriptLine

DEPTH_MAX = 60
"""Of commands in commands and in functions; what goes deeper is not followed."""
_DEFAULTED = lazy_re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*):?=")
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
    unfollowed: Unfollowed | None = None,
) -> Course | None:
    """How a script, or a command line, goes; None where only a real run would tell.

    `elsewhere` are the variables that others set, if known. The lines that are not followed are put into `unfollowed`.
    """
    read = parse(script) if isinstance(script, str) else None
    noted: Unfollowed = unfollowed if unfollowed is not None else {}
    if read is not None and not read.is_whole:
        noted[ScriptLine(*read.unread)] = True
        return None
    state = _state(script, env, ask, run or Run(Journal(0.0), 0.0), elsewhere, exits, mounted)
    state.unfollowed = noted
    if read is None:
        state.scope.line = ScriptLine(0, " ".join(script)[:LINE_MAX])
    try:
        code = _block(read.body, state) if read is not None else run_command(tuple(script), "", (), state)
    except Exited as ended:
        code = ended.code
    except Endless:
        return _not_ended(state, None)
    except Later:
        return _not_ended(state, state.run.at_seconds)
    except (Undecided, LoopLeft, Returned):
        state.gives_up()
        return None
    if state.run.is_ahead:
        return _not_ended(state, state.run.at_seconds)
    missing = tuple(dict.fromkeys(state.missing)) if code else ()
    in_time = bool(code and (missing or state.in_time))
    return Course(code or 0, state.says, missing, state.unset, in_time=in_time, files=state.files)


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
    unknown = None if elsewhere is None else elsewhere - env.keys()
    scope = Scope(dict(env), others=unknown)
    own = own if elsewhere is not None else set()
    scope.cleared = set(own)
    state = RunState(ask, run, scope, _block, _node, exits, mounted=mounted)
    scope.unset = lambda name: or_empty(name, state)
    scope.total = lambda text: total_of(text, state)
    scope.substitute = lambda block: substituted(block, state)
    scope.file_of = lambda block: file_of(block, state)
    scope.refuse = lambda name, why: refused_expansion(name, why, state)
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
    if statement.line:
        state.scope.line = ScriptLine(statement.line, statement.text)
    state.scope.blamed = None
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
            chosen = next((body for asks, body in node.branches if holds(asks, state)), node.otherwise)
            return _block(chosen, state)
        case Loop():
            return looped(partial(repeat, node, state), state)
        case For():
            return looped(partial(go_through, node, state), state)
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
            return looped(partial(count, node, state), state)


def _redirected(redirections: tuple[Redirection, ...], run: Callable[[], int | None], state: RunState) -> int | None:
    """Run what reads from or writes into files."""
    stdin, out = state.stdin, state.out
    if (given := _input(redirections, state)) is not None:
        state.stdin = given
    state.out = []
    try:
        return run()
    finally:
        printed, state.out, state.stdin = "".join(state.out), out, stdin
        _print(printed, redirections, state)


def _input(redirections: tuple[Redirection, ...], state: RunState) -> str | None:
    """What here-documents, here-strings and files feed; None without any of these."""
    given: str | None = None
    for one in redirections:
        if one.operator == "<":
            path = text_of(one.target, state.scope)
            found = "" if path == "/dev/null" else state.file(path)
            given = state.scope.blame() if found is None else found
        elif one.document is not None or one.operator == "<<<":
            given = document_of((one,), state.scope)
            given = given + "\n" if given or one.operator == "<<<" else given
    return given


def _print(text: str, redirections: tuple[Redirection, ...], state: RunState) -> None:
    """Put what is printed where it belongs."""
    for one in redirections:
        if one.operator in (">", ">>", ">|", "&>", "&>>") and one.descriptor in ("", "1"):
            path = text_of(one.target, state.scope)
            if path not in _NOWHERE:
                before = (state.file(path) or "") if one.operator.endswith(">>") else ""
                state.files[state.path(path)] = before + text if len(before + text) <= TEXT_MAX else UNKNOWN
            return
        if one.operator == ">&" and one.descriptor in ("", "1"):
            return
    state.out.append(text)


def _case(case: CaseClause, state: RunState) -> int | None:
    subject = text_of(case.subject, state.scope)
    for choice in case.choices:
        if any(_matches(subject, pattern, state) for pattern in choice.patterns):
            return _block(_chosen(choice), state)
    return 0


def _chosen(choice: Choice) -> Block:
    if choice.end != ";;":
        raise Undecided
    return choice.body


def _matches(subject: str, pattern: Word, state: RunState) -> bool:
    if pattern.plain == "*":
        return True
    shape = pattern_of(pattern, state.scope)
    found = is_alike(shape, subject) if UNKNOWN not in subject + shape else None
    if found is None:
        raise Undecided
    return found


def _simple(node: Simple, state: RunState, feeder: tuple[str, ...]) -> int | None:
    words = state.ran = _words(node, state)
    if not words:
        state.last = 0
        state.scope.assign(node.assignments)
        substituted = any(isinstance(p, Substitution) for one in node.assignments for p in one.value.pieces)
        return state.last if substituted else 0
    if words[0] in DECLARES:
        return _declare(node, words, state)
    given = _input(node.redirections, state)
    run = partial(run_command, words, state.stdin if given is None else given, feeder, state)
    if node.assignments:
        run = partial(_with_variables, node, run, state)
    return _redirected(node.redirections, run, state) if node.redirections else run()


def _with_variables(node: Simple, run: Callable[[], int | None], state: RunState) -> int | None:
    """Run a command with variables of its own: `IFS=, read A B`."""
    variables = state.scope.variables
    before = {one.name: variables.get(one.name) for one in node.assignments}
    state.scope.assign(node.assignments)
    try:
        return run()
    finally:
        for name, value in before.items():
            if value is None:
                variables.pop(name, None)
            else:
                variables[name] = value


def _words(node: Simple, state: RunState) -> tuple[str, ...]:
    """The words of a command with its variables expanded; nothing is split in `[[`."""
    if node.words and node.words[0].plain == "[[":
        state.patterns = tuple(pattern_of(word, state.scope) for word in node.words)
        return tuple(
            _regex(word, state) if at and node.words[at - 1].raw == "=~" else text_of(word, state.scope)
            for at, word in enumerate(node.words)
        )
    return tuple(text for word in node.words for text in fields(word, state.scope))


def _regex(word: Word, state: RunState) -> str:
    """What stands after `=~`: an expression as it is written, or a variable that holds one."""
    match word.pieces:
        case (OtherExpansion((inner,)),) if inner.raw == word.raw:
            return text_of(inner, state.scope)
    return word.raw if not re.search(r"""['"\\`]|\$[A-Za-z_{(]""", word.raw) else state.scope.blame()


def _declare(node: Simple, words: tuple[str, ...], state: RunState) -> int:
    names = [*(one.name for one in node.assignments), *(word for word in words[1:] if not word.startswith("-"))]
    if words[0] == "local" and state.hidden is not None:
        for name in names:
            state.hidden.setdefault(name, state.scope.variables.get(name))
            state.scope.variables[name] = UNKNOWN  # bash leaves it unset, dash as it was.
    state.scope.assign(node.assignments)
    return 0
