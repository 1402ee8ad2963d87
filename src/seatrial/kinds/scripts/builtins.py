"""Commands of the shell and small programs whose output is known: `echo`, `seq`, `grep`, `[`. Knows no cluster."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterable

from seatrial.kinds.scripts.arithmetic import NotKnown
from seatrial.kinds.scripts.conditions import INTEGER, fault_of, judged
from seatrial.kinds.scripts.expansion import UNKNOWN, errexit
from seatrial.kinds.scripts.process import Undecided
from seatrial.kinds.scripts.run_state import RunState
from seatrial.model import lazy_re
from seatrial.text import regex

Printer = Callable[[tuple[str, ...], str, RunState], tuple[int | None, str]]
"""Its code and what it prints, by its words and what is fed to it."""

QUIET = {":": 0, "true": 0, "false": 1, "wait": 0, "trap": 0, "umask": 0, "cd": 0, "mkdir": 0, "chmod": 0}
TESTS = frozenset(("[", "[[", "test"))
SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
EPOCH_SECONDS = 1_767_225_600
"""When the clock of the cluster begins: 2026-01-01."""
LINES_MAX = 2_001
_LENGTH = lazy_re.compile(r"(\d+(?:\.\d+)?|\.\d+)([smhd]?)")
_STRICT = lazy_re.compile(r"-[a-z]*u[a-z]*|nounset")
_FILE_TESTS = frozenset(("-f", "-e", "-s", "-r", "-x"))
_FORMATS = lazy_re.compile(r"%s|%d|%%|\\n|\\t|\\\\")


def printed_by(name: str) -> Printer | None:
    return _PRINTERS.get(name)


def seconds_of(lengths: Iterable[str]) -> float:
    """The arguments of `sleep` and `timeout`: `5`, `1m`, `0.5`."""
    total = 0.0
    for length in lengths:
        found = _LENGTH.fullmatch(length)
        if found is None:
            raise Undecided
        total += float(found[1]) * SECONDS[found[2]]
    return total


def set_options(flags: list[str], state: RunState) -> int:
    if "--" in flags or any(not flag.startswith(("-", "+")) and flag not in _OPTIONS for flag in flags):
        raise Undecided
    if "+o" in flags and "errexit" in flags:
        state.exits = False
        return 0
    state.exits = errexit(flags, before=state.exits)
    state.strict = (state.strict and "+u" not in flags) or any(_STRICT.fullmatch(flag) for flag in flags)
    state.pipefail = (state.pipefail or "pipefail" in flags) and "+o" not in flags
    return 0


_OPTIONS = frozenset(("errexit", "nounset", "pipefail", "xtrace", "posix", "allexport", "verbose"))


def judge(words: tuple[str, ...], state: RunState) -> int | None:
    """The code of `[`, `test` or `[[`."""
    inner = words[1:-1] if words[0] != "test" else words[1:]
    match inner:
        case ("-n" | "-z" as asks, word) if word.strip(UNKNOWN):
            return int(asks == "-z")  # Some of it is known, so that it is not empty.
    if any(UNKNOWN in word for word in inner):
        return None
    if words[0] != "[[" and (fault := fault_of(inner)):
        state.says, state.unset = f"{words[0]}: {fault}", state.blank
        return 2
    match inner:
        case (test, path) if test in _FILE_TESTS:
            return 0 if state.file(path) is not None else None
        case ("!", test, path) if test in _FILE_TESTS:
            return 1 if state.file(path) is not None else None
    return judged(inner, pattern=words[0] == "[[")


def number_of(name: str, state: RunState) -> int:
    """The value of a variable in arithmetic; raises `NotKnown`."""
    if name == "SECONDS" and name not in state.scope.variables:
        return int(state.run.since_start_seconds)
    text = state.scope.variables.get(name, "" if name in state.own else UNKNOWN)
    if text and not INTEGER.fullmatch(text):
        raise NotKnown
    return int(text or 0)


def _echo(words: tuple[str, ...], stdin: str, state: RunState) -> tuple[int | None, str]:
    flags = [word for word in words[1:2] if re.fullmatch(r"-[neE]+", word)]
    text = " ".join(words[1 + len(flags) :])
    if flags and "e" in flags[0]:
        text = text.replace("\\n", "\n").replace("\\t", "\t")
    return 0, text if flags and "n" in flags[0] else f"{text}\n"


def _printf(words: tuple[str, ...], stdin: str, state: RunState) -> tuple[int | None, str]:
    form, rest = (words[1] if len(words) > 1 else ""), list(words[2:])
    if re.search(r"%[^sd%]", form):
        return 0, UNKNOWN

    def fill(found: re.Match[str]) -> str:
        if found[0] in ("%s", "%d"):
            return rest.pop(0) if rest else ""
        return {"%%": "%", "\\n": "\n", "\\t": "\t", "\\\\": "\\"}[found[0]]

    text = _FORMATS.sub(fill, form)
    while rest and re.search(r"%[sd]", form) and len(text) < 100_000:
        text += _FORMATS.sub(fill, form)
    return 0, text


def _cat(words: tuple[str, ...], stdin: str, state: RunState) -> tuple[int | None, str]:
    paths = [word for word in words[1:] if word != "-" and not word.startswith("-")]
    if not paths:
        return 0, stdin
    found = [state.file(path) for path in paths]
    return (None if None in found else 0), "".join(UNKNOWN if text is None else text for text in found)


def _tee(words: tuple[str, ...], stdin: str, state: RunState) -> tuple[int | None, str]:
    for path in words[1:]:
        if not path.startswith("-"):
            state.files[path] = stdin
    return 0, stdin


def _seq(words: tuple[str, ...], stdin: str, state: RunState) -> tuple[int | None, str]:
    numbers = [int(word) if INTEGER.fullmatch(word) else None for word in words[1:]]
    match numbers:
        case [int(last)]:
            first, step = 1, 1
        case [int(first), int(last)]:
            step = 1
        case [int(first), int(step), int(last)] if step:
            pass
        case _:
            return None, UNKNOWN
    found = list(range(first, last + (1 if step > 0 else -1), step))[:LINES_MAX]
    return 0, "".join(f"{number}\n" for number in found)


def _date(words: tuple[str, ...], stdin: str, state: RunState) -> tuple[int | None, str]:
    if "+%s" not in words[1:]:
        return 0, UNKNOWN
    return 0, f"{EPOCH_SECONDS + int(state.run.at_seconds)}\n"


def _base64(words: tuple[str, ...], stdin: str, state: RunState) -> tuple[int | None, str]:
    if UNKNOWN in stdin:
        return 0, UNKNOWN
    if {"-d", "-D", "--decode"} & set(words[1:]):
        try:
            return 0, base64.b64decode(stdin, validate=False).decode(errors="replace")
        except binascii.Error:
            return 1, ""
    return 0, base64.b64encode(stdin.encode()).decode() + "\n"


def _grep(words: tuple[str, ...], stdin: str, state: RunState) -> tuple[int | None, str]:
    flags = "".join(word[1:] for word in words[1:] if re.fullmatch(r"-[a-zA-Z]+", word))
    rest = [word for word in words[1:] if not word.startswith("-")]
    if UNKNOWN in "".join((stdin, *rest)) or len(rest) != 1 or set(flags) - set("qviwxEFc"):
        return None, UNKNOWN
    pattern = re.escape(rest[0]) if "F" in flags else rest[0]
    pattern = rf"\b(?:{pattern})\b" if "w" in flags else rf"^(?:{pattern})$" if "x" in flags else pattern
    lines = {line: regex.is_found(pattern, line, ignore_case="i" in flags) for line in ("", *stdin.splitlines())}
    if lines[""] is None:
        return None, UNKNOWN
    found = [line for line in stdin.splitlines() if lines[line] != ("v" in flags)]
    text = f"{len(found)}\n" if "c" in flags else "".join(f"{line}\n" for line in found)
    return int(not found), "" if "q" in flags else text


def _wc(words: tuple[str, ...], stdin: str, state: RunState) -> tuple[int | None, str]:
    if words[1:] != ("-l",) or UNKNOWN in stdin:
        return 0, UNKNOWN
    return 0, f"{stdin.count(chr(10))}\n"


def _tr(words: tuple[str, ...], stdin: str, state: RunState) -> tuple[int | None, str]:
    match words[1:]:
        case ("-d", what) if UNKNOWN not in stdin:
            gone = what.encode().decode("unicode_escape").strip("[]")
            return 0, "".join(letter for letter in stdin if letter not in gone)
    return 0, UNKNOWN


def _head(words: tuple[str, ...], stdin: str, state: RunState) -> tuple[int | None, str]:
    count = re.fullmatch(r"-n?\s?(\d+)", " ".join(words[1:]))
    if count is None or UNKNOWN in stdin:
        return 0, UNKNOWN
    lines = stdin.splitlines(keepends=True)
    size = int(count[1])
    return 0, "".join(lines[:size] if words[0] == "head" else lines[-size:] if size else [])


_PRINTERS: dict[str, Printer] = {
    "base64": _base64,
    "cat": _cat,
    "date": _date,
    "echo": _echo,
    "grep": _grep,
    "head": _head,
    "printf": _printf,
    "seq": _seq,
    "tail": _head,
    "tee": _tee,
    "tr": _tr,
    "wc": _wc,
}
