"""Conditions of scripts: what `[`, `test` and `[[` come to, and the errors of `[`. Knows words that are expanded."""

from __future__ import annotations

import re
from collections.abc import Callable

from seatrial.model import lazy_re

NUMBERS: dict[str, Callable[[int, int], bool]] = {
    "-eq": int.__eq__,
    "-ne": int.__ne__,
    "-lt": int.__lt__,
    "-le": int.__le__,
    "-gt": int.__gt__,
    "-ge": int.__ge__,
}
INTEGER = lazy_re.compile(r"\s*[-+]?\d+\s*")
_GROUPS = frozenset(("-a", "-o", "(", ")"))
_OPERATORS = frozenset(("&&", "||", "(", ")", "<", ">", "=~"))
"""Of `[[`; what holds more than one comparison is not evaluated."""


def judged(inner: tuple[str, ...], *, pattern: bool) -> int | None:
    """The code of a comparison, if it is known. `[[` compares with patterns, which are not evaluated."""
    if pattern and not _OPERATORS.isdisjoint(inner):
        return None
    if inner[:1] == ("!",) and len(inner) > 1:
        code = judged(inner[1:], pattern=pattern)
        return None if code is None else int(not code)
    match inner:
        case (word,):
            return int(not word)
        case ("-z", word):
            return int(bool(word))
        case ("-n", word):
            return int(not word)
        case (_, "=" | "==" | "!=", right) if pattern and re.search(r"[*?\[]", right):
            return None
        case (left, "=" | "==", right):
            return int(left != right)
        case (left, "!=", right):
            return int(left == right)
        case (left, operator, right) if operator in NUMBERS:
            return int(not NUMBERS[operator](_as_number(left), _as_number(right)))
    return None


def fault_of(inner: tuple[str, ...]) -> str:
    """The error of `[` about a comparison that lacks a side, as bash prints it; the code is 2."""
    match inner:
        case ("!", _) | (_, "!"):
            return ""
        case (word, _) if not re.fullmatch(r"-[a-zA-Z]", word):
            return f"{word}: unary operator expected"
        case (_, _, _, *rest) if rest and inner[0] != "!" and _GROUPS.isdisjoint(inner):
            return "too many arguments"
        case (left, operator, right) if operator in NUMBERS:
            wrong = [word for word in (left, right) if not INTEGER.fullmatch(word)]
            return f"{wrong[0]}: integer expression expected" if wrong else ""
    return ""


def _as_number(word: str) -> int:
    """`[[` takes what is empty for 0."""
    return int(word) if INTEGER.fullmatch(word) else 0
