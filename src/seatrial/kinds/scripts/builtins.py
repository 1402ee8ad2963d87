"""Commands of the shell and small programs whose output is known: `echo`, `read`, `[`, `cut`. Knows no cluster."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from seatrial.kinds.scripts import patterns
from seatrial.kinds.scripts.arithmetic import NotKnown
from seatrial.kinds.scripts.awk import awk
from seatrial.kinds.scripts.conditions import INTEGER, fault_of, judged
from seatrial.kinds.scripts.expansion import BLANK, TEXT_MAX, UNKNOWN, errexit
from seatrial.kinds.scripts.grep import grep
from seatrial.kinds.scripts.jq_tool import jq_tool
from seatrial.kinds.scripts.process import Undecided
from seatrial.kinds.scripts.run_state import RunState
from seatrial.kinds.scripts.sed import edited_in_place, sed
from seatrial.kinds.scripts.text_tools import TOOLS, Tool
from seatrial.model import lazy_re
from seatrial.text import regex

Printer = Callable[[tuple[str, ...], str, RunState], tuple[int | None, str]]
"""Its code and what it prints, by its words and what is fed to it."""

QUIET = {":": 0, "true": 0, "false": 1, "wait": 0, "trap": 0, "umask": 0, "mkdir": 0, "chmod": 0, "chown": 0, "sync": 0}
TESTS = frozenset(("[", "[[", "test"))
SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
EPOCH_SECONDS = 1_767_225_600
"""When the clock of the cluster begins: 2026-01-01."""
_LENGTH = lazy_re.compile(r"(\d+(?:\.\d+)?|\.\d+)([smhd]?)")
_STRICT = lazy_re.compile(r"-[a-z]*u[a-z]*|nounset")
_THERE = frozenset(("-f", "-e", "-r"))
_ESCAPE = lazy_re.compile(r"\\(?:([abcefnrtv\\'\"])|(0?[0-7]{1,3}))")
_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "\\": "\\", "e": "\x1b"}
_FORMAT = lazy_re.compile(
    r"%(?:(%)|([-0 +#]*)(\d{0,4})(?:\.(\d{1,4}))?([a-zA-Z]))|\\(?:([abcefnrtv\\'\"])|([0-7]{1,3}))|[^%\\]+|.", re.S
)


def printed_by(name: str) -> Printer | None:
    return _PRINTERS.get(name) or (_of_tool(TEXT_TOOLS[name], name) if name in TEXT_TOOLS else None)


def _of_tool(tool: Tool, name: str) -> Printer:
    """A program that turns text into text. Where it is not followed, it is assumed to succeed, unless it searches."""

    def run(words: tuple[str, ...], stdin: str, state: RunState) -> tuple[int | None, str]:
        code = None if name in SEARCH else 0

        def read(paths: list[str]) -> str | None:
            texts = [stdin if path == "-" else state.file(path) for path in paths or ["-"]]
            if not paths or "-" in paths:
                state.stdin = ""
            return None if any(text is None or UNKNOWN in text for text in texts) else "".join(filter(None, texts))

        found = tool(list(words[1:]), read) if not any(UNKNOWN in word for word in words) else None
        if found is None or len(found[1]) > TEXT_MAX:
            state.scope.blamed = state.scope.blamed or state.scope.line
            return code, UNKNOWN
        if name == "sed" and (changed := edited_in_place(list(words[1:]))):
            state.files[state.path(changed[0])] = found[1]
            return found[0], ""
        return found

    return run


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
    if "--" in flags:
        place = flags.index("--")
        state.scope.arguments = tuple(flags[place + 1 :])
        flags = flags[:place]
    if any(not flag.startswith(("-", "+")) and flag not in _OPTIONS for flag in flags):
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
    double = words[0] == "[["
    if not double and not any(UNKNOWN in word for word in inner) and (fault := fault_of(inner)):
        state.says, state.unset = f"{words[0]}: {fault}", state.blank
        return 2
    shapes = state.patterns[1:-1] if double and len(state.patterns) == len(words) else inner
    return judged(tuple(zip(inner, shapes, strict=True)), lambda test, path: _is_so(test, path, state), double=double)


def _is_so(test: str, path: str, state: RunState) -> bool | None:
    """Whether a file is there. What no script wrote may be in the image."""
    text = state.file(path)
    if text is None or UNKNOWN in text:
        return True if text is not None and test in _THERE else None
    return bool(text) if test == "-s" else True if test in _THERE else None


def number_of(name: str, state: RunState) -> int:
    """The value of a variable in arithmetic; raises `NotKnown`."""
    if name == "SECONDS" and name not in state.scope.variables:
        return int(state.run.since_start_seconds)
    text = state.scope.variables.get(name, "" if name in state.scope.cleared else UNKNOWN)
    if text and not INTEGER.fullmatch(text):
        raise NotKnown
    return int(text or 0)


def read_line(words: tuple[str, ...], state: RunState) -> int | None:
    """`read -r NAME...`: one line of the input, in fields."""
    options = [word for word in words[1:] if word.startswith("-")]
    names = [word for word in words[1:] if not word.startswith("-")] or ["REPLY"]
    if any(option != "-r" for option in options) or not all(name.isidentifier() for name in names):
        raise Undecided
    if UNKNOWN in state.stdin:
        for name in names:
            state.scope.put(name, UNKNOWN)
        return None
    line, end, state.stdin = state.stdin.partition("\n")
    if "\\" in line and not options:
        raise Undecided
    ifs = state.scope.variables.get("IFS", BLANK)
    for name, value in zip(names, _parts(line, len(names), ifs), strict=True):
        state.scope.put(name, value)
    return int(not end)


def _parts(line: str, count: int, ifs: str) -> list[str]:
    """The fields of a line; the last one is all that is left."""
    blank = "".join(letter for letter in ifs if letter in BLANK)
    rest, found = line.strip(blank) if blank else line, list[str]()
    for _ in range(count - 1):
        end = next((at for at, letter in enumerate(rest) if letter in ifs), len(rest))
        found.append(rest[:end])
        rest = rest[end:].lstrip(blank) if blank else rest[end:]
        if rest[:1] and rest[0] in ifs and (rest[0] not in blank):
            rest = rest[1:].lstrip(blank) if blank else rest[1:]
    if rest[-1:] and rest[-1] in ifs and not any(letter in ifs for letter in rest[:-1]):
        rest = rest[:-1]
    return [*found, rest]


def _echo(words: tuple[str, ...], stdin: str, state: RunState) -> tuple[int | None, str]:
    flags = [word for word in words[1:2] if re.fullmatch(r"-[neE]+", word)]
    text = " ".join(words[1 + len(flags) :])
    if flags and "e" in flags[0]:
        text = _unescaped(text)
    elif _ESCAPE.search(text) and not (flags and "E" in flags[0]):
        text = state.scope.blame()  # bash prints it as it is; dash and others do not.
    return 0, text if flags and "n" in flags[0] else f"{text}\n"


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(
        lambda found: _ESCAPES.get(found[1], f"\\{found[1]}") if found[1] else chr(int(found[2], 8)), text
    )


def _printf(words: tuple[str, ...], stdin: str, state: RunState) -> tuple[int | None, str]:
    form, *given = words[2:] if words[1:2] == ("--",) else words[1:]
    rest, out = list(given), ""
    while True:
        before = len(rest)
        for found in _FORMAT.finditer(form):
            piece = _formatted(found, rest)
            if piece is None:
                return 0, state.scope.blame()
            out += piece
        if not rest or len(rest) == before:
            return 0, out
        if len(out) > TEXT_MAX:
            return 0, state.scope.blame()


def _formatted(found: re.Match[str], rest: list[str]) -> str | None:
    """One piece of a format; None where it is not modelled."""
    percent, flags, width, precision, letter, escape, octal = found.groups()
    if percent:
        return "%"
    if escape:
        return _ESCAPES.get(escape, escape) if escape != "c" else None
    if octal:
        return chr(int(octal, 8))
    if not letter:
        return found[0] if found[0] not in ("%", "\\") else None
    value = rest.pop(0) if rest else ""
    sign = f"%{flags}{width}" + (f".{precision}" if precision else "")
    if letter in "sc":
        return f"{sign}s" % (value[:1] if letter == "c" else value) if "0" not in flags else None
    if letter == "b":
        return _unescaped(value) if not (flags or width or precision) else None
    if letter in "dixXo" and re.fullmatch(r"[-+]?(?:0|[1-9]\d{0,17})?", value):
        return f"{sign}{letter}" % int(value or 0)
    return None


def _expr(words: tuple[str, ...], stdin: str, state: RunState) -> tuple[int | None, str]:
    """`expr 1 + 2`, `expr text : expression`: the code is 1 where the result is empty or 0."""
    found: str | None = None
    match words[1:]:
        case parts if any(UNKNOWN in part for part in parts):
            pass
        case ("length", text):
            found = str(len(text))
        case (text, ":", pattern):
            found = _expr_match(text, pattern)
        case (left, "=" | "!=" as sign, right):
            found = str(int((left == right) == (sign == "=")))
        case (first, *rest) if len(rest) % 2 == 0 and INTEGER.fullmatch(first):
            found = _sum(int(first), rest)
    if found is None:
        return None, state.scope.blame()
    return int(found in ("", "0")), f"{found}\n"


def _expr_match(text: str, pattern: str) -> str | None:
    expression = patterns.basic(pattern.removeprefix("^"))
    if expression is None or regex.is_found(expression, "") is None:
        return None
    found = regex.groups(f"\\A(?:{expression})", text, longest=True)
    if "(" in expression.replace("\\(", ""):
        return found[1] if found else ""
    return str(len(found[0])) if found else "0"


def _sum(total: int, rest: list[str]) -> str | None:
    """Terms from left to right, if their operators are of one rank."""
    signs = set(rest[::2])
    if not (signs <= {"+", "-"} or signs <= {"*", "/", "%"} or (len(rest) == 2 and signs <= set(_ORDER))):
        return None
    for sign, word in zip(rest[::2], rest[1::2], strict=True):
        if not INTEGER.fullmatch(word) or (sign in "/%" and not int(word)):
            return None
        other = int(word)
        if sign in _ORDER:
            return str(int(_ORDER[sign](total, other)))
        quotient = abs(total) // abs(other) * (1 if (total < 0) == (other < 0) else -1) if other else 0
        total = {"+": total + other, "-": total - other, "*": total * other, "/": quotient}.get(
            sign, total - other * quotient
        )
    return str(total)


_ORDER: dict[str, Callable[[int, int], bool]] = {"<": int.__lt__, "<=": int.__le__, ">": int.__gt__, ">=": int.__ge__}


def _cat(words: tuple[str, ...], stdin: str, state: RunState) -> tuple[int | None, str]:
    paths = [word for word in words[1:] if word == "-" or not word.startswith("-")]
    if not paths or "-" in paths:
        state.stdin = ""
    found = [stdin if path == "-" else state.file(path) for path in paths or ["-"]]
    return (None if None in found else 0), "".join(state.scope.blame() if text is None else text for text in found)


def _tee(words: tuple[str, ...], stdin: str, state: RunState) -> tuple[int | None, str]:
    for path in words[1:]:
        if not path.startswith("-"):
            before = (state.file(path) or "") if "-a" in words else ""
            state.files[state.path(path)] = before + stdin
    return 0, stdin


def _copy(words: tuple[str, ...], stdin: str, state: RunState) -> tuple[int | None, str]:
    """`cp` and `mv` of one file."""
    paths = [word for word in words[1:] if not word.startswith("-")]
    text = state.file(paths[0]) if len(paths) == 2 else None
    if text is None:
        return None, ""
    state.files[state.path(paths[1])] = text
    if words[0].endswith("mv"):
        state.files.pop(state.path(paths[0]), None)
    return 0, ""


def _remove(words: tuple[str, ...], stdin: str, state: RunState) -> tuple[int | None, str]:
    for path in words[1:]:
        state.files.pop(state.path(path), None)
    return 0, ""


def _touch(words: tuple[str, ...], stdin: str, state: RunState) -> tuple[int | None, str]:
    for path in words[1:]:
        if not path.startswith("-") and state.file(path) is None:
            state.files[state.path(path)] = UNKNOWN if not path.startswith("/tmp/") else ""
    return 0, ""


def _mktemp(words: tuple[str, ...], stdin: str, state: RunState) -> tuple[int | None, str]:
    path = f"/tmp/tmp.{len(state.files):010}"
    state.files[path] = ""
    return 0, f"{path}\n"


def _date(words: tuple[str, ...], stdin: str, state: RunState) -> tuple[int | None, str]:
    if "+%s" not in words[1:]:
        return 0, state.scope.blame()
    return 0, f"{EPOCH_SECONDS + int(state.run.at_seconds)}\n"


TEXT_TOOLS: dict[str, Tool] = {
    **TOOLS,
    "awk": awk,
    "egrep": lambda given, read: grep(["-E", *given], read),
    "fgrep": lambda given, read: grep(["-F", *given], read),
    "gawk": awk,
    "grep": grep,
    "jq": jq_tool,
    "mawk": awk,
    "sed": sed,
}
SEARCH = frozenset(("grep", "egrep", "fgrep", "jq"))
"""Programs whose code depends on the input."""
_PRINTERS: dict[str, Printer] = {
    "cat": _cat,
    "cp": _copy,
    "date": _date,
    "echo": _echo,
    "expr": _expr,
    "mktemp": _mktemp,
    "mv": _copy,
    "printf": _printf,
    "rm": _remove,
    "tee": _tee,
    "touch": _touch,
}
