"""Running one command of a script: the shell's own, functions, scripts in scripts, and programs. Knows no tree."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache, partial

from seatrial.kinds.scripts.arithmetic import NotKnown, evaluate
from seatrial.kinds.scripts.builtins import (
    QUIET,
    TESTS,
    Printer,
    judge,
    number_of,
    printed_by,
    read_line,
    seconds_of,
    set_options,
)
from seatrial.kinds.scripts.conditions import INTEGER
from seatrial.kinds.scripts.expansion import UNKNOWN, split, text_of
from seatrial.kinds.scripts.parser import commands_in_text, parse
from seatrial.kinds.scripts.process import TimedOut, Undecided
from seatrial.kinds.scripts.run_state import CommandReply, Exited, LoopLeft, OuterCommand, Returned, RunState
from seatrial.kinds.scripts.shell import PREFIXES, SHELLS, script_of
from seatrial.kinds.scripts.syntax import Block, OtherExpansion, Word
from seatrial.kinds.scripts.word_parser import UnreadableScript, read_document

UNREAD = frozenset(("coproc", "getopts", "mapfile", "return"))
BATCH_MAX = 1_000
PRINTED_MAX = 20_000_000
"""Of characters that all commands of a script print together."""
CALLS_MAX = 500
KILLED = 124
"""The code of `timeout` when it ends a command."""


def run_command(words: tuple[str, ...], stdin: str, feeder: tuple[str, ...], state: RunState) -> int | None:
    match words:
        case ("exit",) if state.last is not None:
            raise Exited(state.last)
        case ("exit", code) if code.isdigit():
            raise Exited(int(code))
        case ("break" | "continue" as how, *levels) if not levels or levels[0].isdigit():
            raise LoopLeft(how, int(levels[0]) if levels else 1)
        case ("return",) if state.hidden is not None:
            raise Returned(state.last)
        case ("return", code) if state.hidden is not None and code.isdigit():
            raise Returned(int(code))
        case ("exit" | "break" | "continue", *_):
            raise Undecided
        case ("set", *flags):
            return set_options(flags, state)
        case ("unset", *names):
            for name in names:
                state.scope.variables.pop(name, None)
                state.scope.sources.pop(name, None)
                state.scope.cleared.add(name)
            return 0
        case ("let", *terms) if terms:
            return int(not [value_of(term, state) for term in terms][-1])
        case ("read", *_):
            return read_line(words, state)
        case ("shift", *count) if state.scope.arguments is not None and all(one.isdigit() for one in count):
            return _shift(int(count[0]) if count else 1, state)
        case ("shift", *_):
            raise Undecided
        case ("cd", path):
            state.where = state.path(path)
            return 0
        case ("pwd",) if state.where:
            state.out.append(f"{state.where}\n")
            return 0
        case ("sleep", "infinity" | "inf") | ("tail", "-f", *_):
            state.run.block()
        case ("sleep", *lengths) if lengths:
            state.run.sleep(seconds_of(lengths))
            return 0
    if words[0] in state.functions:
        return _call(words, state)
    return _program(words, stdin, feeder, state)


def _program(words: tuple[str, ...], stdin: str, feeder: tuple[str, ...], state: RunState) -> int | None:
    if words[0] in UNREAD:
        raise Undecided
    if words[0] in QUIET:
        return QUIET[words[0]]
    if words[0] in TESTS:
        return judge(words, state)
    if words[0] in PREFIXES and len(words) > 1:
        code = run_command(words[1:], stdin, feeder, state)
        if words[0] == "exec":
            raise Exited(code or 0)
        return code
    match words:
        case ("timeout", *rest):
            return _timeout(rest, stdin, state)
        case ("xargs", *rest):
            return _xargs(rest, stdin, state)
        case ("env", *rest) if rest and "=" not in rest[0] and not rest[0].startswith("-"):
            return run_command(tuple(rest), stdin, feeder, state)
    name = words[0].rpartition("/")[2]
    if name in SHELLS or words[0] in (".", "source") or state.file(words[0]) is not None:
        return _script(words, state)
    if printer := printed_by(name):
        return _printed(printer, words, stdin, state)
    return _asked(OuterCommand(words, stdin if UNKNOWN not in stdin or stdin.strip(UNKNOWN) else "", feeder), state)


def _printed(printer: Printer, words: tuple[str, ...], stdin: str, state: RunState) -> int | None:
    code, text = printer(words, stdin, state)
    state.printed += len(text)
    if state.printed > PRINTED_MAX:
        raise Undecided
    state.out.append(text)
    return code


def _shift(count: int, state: RunState) -> int:
    arguments = state.scope.arguments or ()
    if count > len(arguments):
        return 1
    state.scope.arguments = arguments[count:]
    return 0


def _xargs(rest: list[str], stdin: str, state: RunState) -> int | None:
    """`xargs [-r] [-n 1] [-I {}] COMMAND`: run a command with words of the input."""
    size, placeholder, needs_input = 0, "", False
    words = list(rest)
    while words and words[0].startswith("-"):
        word = words.pop(0)
        if word in ("-r", "--no-run-if-empty"):
            needs_input = True
        elif word[:2] in ("-n", "-L", "-I") and (value := word[2:] or (words.pop(0) if words else "")):
            placeholder = value if word[:2] == "-I" else placeholder
            size = 1 if word[:2] == "-I" else int(value) if value.isdigit() else 0
        else:
            raise Undecided
    if UNKNOWN in stdin or re.search(r"['\"\\]", stdin):
        state.scope.blamed = state.scope.blamed or state.scope.line
        return run_command((*words, UNKNOWN), "", (), state) if words else None
    state.stdin, words = "", words or ["echo"]
    given = [line.strip() for line in stdin.split("\n") if line.strip()] if placeholder else split(stdin)
    if len(given) > BATCH_MAX:
        raise Undecided
    batches = [given[at : at + size] for at in range(0, len(given), size)] or [[]] if size else [given]
    codes = list[int | None]()
    for batch in batches if given or not (needs_input or placeholder) else ():
        command = [word.replace(placeholder, batch[0]) for word in words] if placeholder else [*words, *batch]
        codes.append(run_command(tuple(command), "", (), state))
    return None if None in codes else 123 if any(codes) else 0


def _timeout(rest: list[str], stdin: str, state: RunState) -> int | None:
    """`timeout 60 COMMAND`: what does not end in time is ended."""
    while rest and rest[0].startswith("-"):
        rest = rest[2:] if rest[0] in ("-k", "-s", "-t") and "=" not in rest[0] and len(rest) > 2 else rest[1:]
    if len(rest) < 2:
        raise Undecided
    seconds = seconds_of(rest[:1])
    try:
        return state.run.limited(seconds, lambda: run_command(tuple(rest[1:]), stdin, (), state))
    except TimedOut:
        return KILLED


def _script(words: tuple[str, ...], state: RunState) -> int | None:
    """A script in a script: `sh -c`, a file that is mounted or was written, `source`."""
    inline, exits = script_of(list(words))
    if inline is None:
        path = words[0] if state.file(words[0]) is not None else next((w for w in words[1:] if w[:1] != "-"), "")
        inline = state.file(path)
    if inline is None:
        raise Undecided
    read = parse(inline)
    if not read.is_whole:
        raise Undecided
    if words[0] in (".", "source"):
        return state.block(read.body, state)

    def run() -> int | None:
        state.exits = exits
        state.scope.arguments = tuple(_script_arguments(words))
        return state.block(read.body, state)

    return guarded(partial(in_subshell, run, state), state, False)


def _script_arguments(words: tuple[str, ...]) -> list[str]:
    """What follows the text of `sh -c` and its `$0`, or the path of a file."""
    if words[0].rpartition("/")[2] not in SHELLS:
        return list(words[1:])
    place = next((at for at, word in enumerate(words) if at and not word.startswith("-")), len(words))
    is_text = any(re.fullmatch(r"-[a-z]*c[a-z]*", word) for word in words[1:place])
    return list(words[place + 1 + is_text :])


def _call(words: tuple[str, ...], state: RunState) -> int | None:
    """Run a function with arguments and local variables of its own."""
    state.calls += 1
    if state.calls > CALLS_MAX:
        raise Undecided
    scope, hidden, depth = state.scope, state.hidden, state.depth
    state.scope, state.hidden = scope.call(words[1:]), {}
    try:
        return state.node(state.functions[words[0]], state, ())
    except Returned as returned:
        return returned.code
    finally:
        for name, value in state.hidden.items():
            if value is None:
                scope.variables.pop(name, None)
            else:
                scope.variables[name] = value
        state.scope, state.hidden, state.depth = scope, hidden, depth


def _asked(asked: OuterCommand, state: RunState) -> int | None:
    reply: CommandReply = state.ask(asked, state)
    if reply.unfollowed:
        line = state.scope.blamed if UNKNOWN in "".join(asked.words) else state.scope.line
        state.gives_up(line, is_change=reply.unfollowed == "change")
    if UNKNOWN in reply.out:
        state.scope.blamed = state.scope.blamed or state.scope.line
    if not state.run.is_ahead:  # What lies ahead is not said yet.
        state.says = reply.says or state.says
    state.missing.extend([reply.missing] if reply.missing else [])
    state.in_time = state.in_time or reply.in_time
    state.out.append(reply.out)
    return reply.code


def or_empty(name: str, state: RunState) -> str:
    """A variable that only the script sets, and has not yet, is empty."""
    if name == "?":
        return UNKNOWN if state.last is None else str(state.last)
    if name == "SECONDS":
        return str(int(state.run.since_start_seconds))
    if name not in state.scope.cleared:
        return UNKNOWN
    state.blank = name
    if state.strict:
        state.says, state.unset = f"{name}: unbound variable", name
        raise Exited(1)
    return ""


def substituted(block: Block, state: RunState) -> str:
    """What commands print, in a subshell."""
    out, state.out = state.out, []
    try:
        state.last = in_subshell(partial(state.block, block, state), state)
        return "".join(state.out)
    finally:
        state.out = out


def file_of(block: Block, state: RunState) -> str:
    """The path of a file that holds what commands print."""
    path = f"/dev/fd/{63 - len([one for one in state.files if one.startswith('/dev/fd/')])}"
    state.files[path] = substituted(block, state)
    return path


def refused_expansion(name: str, why: str, state: RunState) -> str:
    """`${NAME:?why}` ends the script."""
    state.says = f"{name}: {why}"
    state.unset = name if name in state.scope.cleared else state.unset
    raise Exited(1)


def guarded(run: Callable[[], int | None], state: RunState, ignored: bool) -> int | None:
    """The code of what runs where `set -e` ignores failures."""
    before, state.guarded = state.guarded, state.guarded or ignored
    try:
        return run()
    finally:
        state.guarded = before


def in_subshell(run: Callable[[], int | None], state: RunState) -> int | None:
    """The code of what runs with variables and options of its own."""
    scope, exits, strict, depth, pipefail = state.scope, state.exits, state.strict, state.depth, state.pipefail
    where = state.where
    state.scope = scope.copy()
    try:
        return run()
    except Exited as ended:
        return ended.code
    except LoopLeft:
        raise Undecided from None
    finally:
        scope.blamed = state.scope.blamed or scope.blamed
        state.scope, state.exits, state.strict, state.depth, state.pipefail = scope, exits, strict, depth, pipefail
        state.where = where


@lru_cache(maxsize=512)
def _arithmetic_word(text: str) -> Word:
    """An expression as a word: what it names with `$` is expanded first."""
    try:
        return read_document(text, commands_in_text, quoted=False, depth=0)
    except UnreadableScript:
        return Word((OtherExpansion(),))


def total_of(text: str, state: RunState) -> str:
    """Arithmetic takes a variable that is not set for 0."""
    expanded = text_of(_arithmetic_word(text), state.scope) if "$" in text or "`" in text else text
    try:
        return str(evaluate(expanded, lambda name: number_of(name, state), partial(_put, state)))
    except NotKnown:
        return UNKNOWN


def value_of(text: str, state: RunState) -> int:
    found = total_of(text, state)
    if not INTEGER.fullmatch(found):
        raise Undecided
    return int(found)


def _put(state: RunState, name: str, number: int) -> None:
    state.scope.variables[name] = str(number)
