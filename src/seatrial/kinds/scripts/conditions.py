"""Conditions of scripts: what `[`, `test` and `[[` come to, and the errors of `[`. Knows words that are expanded."""

from __future__ import annotations

import re
from collections.abc import Callable

from seatrial.kinds.scripts import patterns
from seatrial.kinds.scripts.expansion import UNKNOWN
from seatrial.model import lazy_re
from seatrial.text import regex

NUMBERS: dict[str, Callable[[int, int], bool]] = {
    "-eq": int.__eq__,
    "-ne": int.__ne__,
    "-lt": int.__lt__,
    "-le": int.__le__,
    "-gt": int.__gt__,
    "-ge": int.__ge__,
}
INTEGER = lazy_re.compile(r"\s*[-+]?\d{1,18}\s*")
_GROUPS = frozenset(("-a", "-o", "(", ")"))
_BINARY = frozenset(("=", "==", "!=", "<", ">", "=~", *NUMBERS))
_UNARY = frozenset(("-z", "-n", "-f", "-e", "-s", "-r", "-x", "-d", "-w", "-L", "-h", "-v"))
WORDS_MAX = 100

Test = tuple[str, str]
"""A word as text, and as a pattern in which what was quoted stands for itself."""
FileTest = Callable[[str, str], bool | None]
"""Whether a test of a file holds: `-f`, `/tmp/x`."""


class Unclear(Exception):
    """Only a run would tell."""


def judged(words: tuple[Test, ...], files: FileTest, *, double: bool) -> int | None:
    """The code of `[` and, if `double`, of `[[`; None where it is not known."""
    if len(words) > WORDS_MAX:
        return None
    reader = _Conditions(words, files, double)
    try:
        found = reader.either()
    except Unclear:
        return None
    return int(not found) if reader.place == len(words) else None


class _Conditions:
    """Reads `a = b && ! -z c`, or `a = b -a ! -z c`. All sides are evaluated: words have no effect."""

    def __init__(self, words: tuple[Test, ...], files: FileTest, double: bool) -> None:
        self.words, self.files, self.double, self.place = words, files, double, 0
        self.ands, self.ors = ("&&", "||") if double else ("-a", "-o")

    def either(self) -> bool:
        found = self.sure(self.both)
        while self.skip(self.ors):
            other = self.sure(self.both)
            found = True if found or other else None if None in (found, other) else False
        if found is None:
            raise Unclear
        return found

    def both(self) -> bool:
        found = self.sure(self.negated)
        while self.skip(self.ands):
            other = self.sure(self.negated)
            found = False if False in (found, other) else None if None in (found, other) else True
        if found is None:
            raise Unclear
        return found

    def sure(self, read: Callable[[], bool]) -> bool | None:
        """None where it is not known; the other side may decide."""
        try:
            return read()
        except Unclear:
            return None

    def negated(self) -> bool:
        if self.at("!") and len(self.words) - self.place > 1 and not self.is_binary(self.place):
            self.place += 1
            found = self.sure(self.negated)
            if found is None:
                raise Unclear
            return not found
        if self.at("(") and not self.is_binary(self.place):
            self.place += 1
            found = self.sure(self.either)
            if not self.skip(")") or found is None:
                raise Unclear
            return found
        return self.single()

    def single(self) -> bool:
        left = self.take()
        if self.is_binary(self.place - 1):
            operator, right = self.take()[0], self.take()
            return self.compared(left[0], operator, right)
        if left[0] in _UNARY and self.place < len(self.words) and not self.ends():
            word = self.take()[0]
            if left[0] in ("-z", "-n"):
                if word.strip(UNKNOWN) == "" and word:
                    raise Unclear
                return bool(word) == (left[0] == "-n")
            return self.of_file(left[0], word)
        if UNKNOWN in left[0]:
            raise Unclear
        return bool(left[0])

    def of_file(self, test: str, path: str) -> bool:
        found = self.files(test, path) if UNKNOWN not in path else None
        if found is None:
            raise Unclear
        return found

    def compared(self, left: str, operator: str, right: Test) -> bool:
        if UNKNOWN in left or UNKNOWN in right[0]:
            raise Unclear
        if operator in NUMBERS:
            return NUMBERS[operator](self.number(left), self.number(right[0]))
        if operator in ("<", ">"):
            return left < right[0] if operator == "<" else left > right[0]
        if operator == "=~":
            expression = patterns.extended(right[0])
            found = regex.is_found(expression, left) if expression is not None else None
        elif self.double:
            found = patterns.is_alike(right[1], left)
        else:
            found = left == right[0]
        if found is None:
            raise Unclear
        return found == (operator != "!=")

    def number(self, word: str) -> int:
        """`[[` takes what is empty for 0."""
        if not word.strip() and self.double:
            return 0
        if not INTEGER.fullmatch(word):
            raise Unclear
        return int(word)

    def is_binary(self, place: int) -> bool:
        """Whether the word at a place is the left side of a comparison."""
        return place + 2 < len(self.words) and self.words[place + 1][0] in _BINARY

    def ends(self) -> bool:
        return self.words[self.place][0] in (self.ands, self.ors, ")")

    def at(self, word: str) -> bool:
        return self.place < len(self.words) and self.words[self.place][0] == word

    def skip(self, word: str) -> bool:
        found = self.at(word)
        self.place += found
        return found

    def take(self) -> Test:
        if self.place >= len(self.words):
            raise Unclear
        self.place += 1
        return self.words[self.place - 1]


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
