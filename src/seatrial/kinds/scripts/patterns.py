"""Patterns of shells, and regular expressions of grep, sed and awk, as expressions of RE2. Knows no command.

A match takes time in proportion to the text (`text.regex`), whatever a chart writes.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from seatrial.model import lazy_re
from seatrial.text import regex

_CLASS = lazy_re.compile(r"\[:[a-z]+:\]")
_SPECIAL = frozenset(".^$*+?{}[]|()\\")
_BASIC = frozenset("(){}|+?")
"""Operators that basic expressions write with a backslash."""
_SAME = frozenset("wWsSbB")


def escaped(text: str) -> str:
    """Text that stands for itself in an expression."""
    return "".join(f"\\{letter}" if letter in _SPECIAL else letter for letter in text)


def glob(pattern: str, *, shortest: bool = False) -> str:
    """The expression of a shell pattern: `*`, `?`, `[a-z]`, and `\\` before a letter that stands for itself."""
    found, at, any_text = "", 0, ".*?" if shortest else ".*"
    while at < len(pattern):
        letter = pattern[at]
        if letter == "\\" and at + 1 < len(pattern):
            found += escaped(pattern[at + 1])
            at += 2
        elif letter == "[" and (end := _bracket_end(pattern, at)):
            found += _bracket(pattern[at:end].replace("[!", "[^", 1))
            at = end
        else:
            found += {"*": any_text, "?": "."}.get(letter, escaped(letter))
            at += 1
    return f"(?s:{found})"


def quoted_glob(text: str) -> str:
    """Text that stands for itself in a shell pattern."""
    return "".join(f"\\{letter}" if letter in "*?[]\\" else letter for letter in text)


def is_alike(pattern: str, text: str) -> bool | None:
    """Whether a shell pattern matches the whole text; None where that is not known."""
    return regex.is_whole(glob(pattern), text)


def without_prefix(text: str, pattern: str, *, longest: bool) -> str | None:
    """`${NAME#pattern}` and `${NAME##pattern}`."""
    found = regex.groups(f"\\A{glob(pattern, shortest=not longest)}", text)
    if found is None:
        return text if regex.is_whole(glob(pattern), "") is not None else None
    return text[len(found[0]) :]


def without_suffix(text: str, pattern: str, *, longest: bool) -> str | None:
    """`${NAME%pattern}` and `${NAME%%pattern}`."""
    rest = "(?s:.*?)" if longest else "(?s:.*)"
    found = regex.groups(f"\\A({rest}){glob(pattern)}\\z", text)
    if found is None:
        return text if regex.is_whole(glob(pattern), "") is not None else None
    return found[1]


def with_replaced(text: str, pattern: str, new: str, *, every: bool) -> str | None:
    """`${NAME/pattern/new}` and `${NAME//pattern/new}`; `#` and `%` bind the pattern to the start and the end."""
    bound = pattern[:1] if pattern[:1] in ("#", "%") and not every else ""
    expression = glob(pattern[len(bound) :])
    if not pattern[len(bound) :]:
        return {"#": new + text, "%": text + new}.get(bound, text)
    if regex.is_whole(expression, "") and not bound:
        # An empty match replaces nothing in bash, except at the start of an empty text.
        return new if not text else regex.replaced(expression, text, _never_empty(new), every=every)
    expression = f"\\A{expression}" if bound == "#" else f"{expression}\\z" if bound == "%" else expression
    return regex.replaced(expression, text, lambda _: new, every=every)


def _never_empty(new: str) -> Callable[[tuple[str, ...]], str]:
    return lambda found: new if found[0] else ""


def extended(pattern: str) -> str | None:
    """The expression of an extended regular expression (`grep -E`, `sed -E`, awk, `=~`); None where it is not known."""
    return _translated(pattern, basic=False)


def basic(pattern: str) -> str | None:
    """The expression of a basic regular expression (`grep`, `sed`, `expr`), with GNU's `\\+`, `\\?` and `\\|`."""
    return _translated(pattern, basic=True)


def _translated(pattern: str, *, basic: bool) -> str | None:
    found, at = "", 0
    start = True
    """Whether nothing stands before it that can be repeated."""
    while at < len(pattern):
        letter = pattern[at]
        if letter == "[":
            end = _bracket_end(pattern, at)
            if not end:
                return None
            found, at, start = found + _bracket(pattern[at:end]), end, False
            continue
        if letter == "\\":
            piece = _after_backslash(pattern[at + 1 : at + 2], basic=basic)
            at += 2
        else:
            piece = _plain(letter, pattern, at, basic=basic, start=start)
            at += 1
        if piece is None:
            return None
        start = piece in ("(", "|") or (start and piece == "^")
        found += piece
    return found


def _after_backslash(letter: str, *, basic: bool) -> str | None:
    if not letter or letter.isdigit():
        return None  # A backreference, which RE2 does not have.
    if basic and letter in _BASIC:
        return letter
    if letter in "<>":
        return r"\b"
    if letter in _SAME:
        return f"\\{letter}"
    if letter in "nt":
        return f"\\{letter}"
    return escaped(letter) if not letter.isalnum() else None


def _plain(letter: str, pattern: str, at: int, *, basic: bool, start: bool) -> str:
    if letter == "*" and start:
        return r"\*"
    if not basic:
        return letter
    if letter in _BASIC:
        return escaped(letter)
    # In a basic expression `^` and `$` are anchors only at its ends, and at those of a group.
    if letter == "^" and not (start and not pattern[:at].endswith("^")):
        return r"\^"
    if letter == "$" and pattern[at + 1 :] and not pattern.startswith(("\\)", "\\|"), at + 1):
        return r"\$"
    return letter


def _bracket_end(pattern: str, at: int) -> int:
    """The place behind a bracket expression; 0 where it does not end."""
    place = at + 1
    place += pattern[place : place + 1] in ("^", "!")
    place += pattern[place : place + 1] == "]"
    while place < len(pattern) and pattern[place] != "]":
        named = _CLASS.match(pattern, place)
        place = named.end() if named else place + 1
    return place + 1 if place < len(pattern) else 0


def _bracket(text: str) -> str:
    """A bracket expression, in which a backslash stands for itself."""
    inner = text[1:-1]
    not_in = "^" if inner.startswith("^") else ""
    inner = inner[len(not_in) :]
    kept = re.split(r"(\[:[a-z]+:\])", inner)
    plain = (
        "".join(f"\\{c}" if c in "[]\\^" else c for c in part) if i % 2 == 0 else part for i, part in enumerate(kept)
    )
    return f"[{not_in}{''.join(plain)}]"
