"""Arithmetic of scripts: `$((N + 1))`, `((i++))`. Integers only."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable

from msgspec import Struct

from seatrial.model import lazy_re

_TOKEN = lazy_re.compile(
    r"""
    \s*(?:
      (?P<number>\d+)
      | \$?\{?(?P<name>[A-Za-z_]\w*)\}?
      | (?P<sign>\+\+|--|[-+*/%]=|<=|>=|==|!=|&&|\|\||[-+*/%()<>!=])
    )
    """,
    re.VERBOSE,
)
_LEVELS: tuple[dict[str, Callable[[int, int], int]], ...] = (
    {"||": lambda a, b: int(bool(a or b))},
    {"&&": lambda a, b: int(bool(a and b))},
    {"==": lambda a, b: int(a == b), "!=": lambda a, b: int(a != b)},
    {
        "<": lambda a, b: int(a < b),
        ">": lambda a, b: int(a > b),
        "<=": lambda a, b: int(a <= b),
        ">=": lambda a, b: int(a >= b),
    },
    {"+": operator.add, "-": operator.sub},
    {"*": operator.mul, "/": lambda a, b: int(a / b), "%": lambda a, b: a - b * int(a / b)},
)
"""From the weakest operators to the strongest."""
_STEPS = {"++": 1, "--": -1}
_ASSIGNS = frozenset(("=", "+=", "-=", "*=", "/=", "%="))


class NotKnown(Exception):
    """A variable that only a run would tell, or text that is not read here."""


class _ArithmeticReader(Struct):
    tokens: list[tuple[str, str]]
    get: Callable[[str], int]
    put: Callable[[str, int], None]
    place: int = 0

    def value(self, level: int = 0) -> int:
        if level == 0 and (name := self.assigned()):
            return self.assignment(name)
        if level == len(_LEVELS):
            return self.unary()
        found = self.value(level + 1)
        while (sign := self.sign()) in _LEVELS[level]:
            self.place += 1
            other = self.value(level + 1)
            if sign in "/%" and not other:
                raise NotKnown
            found = _LEVELS[level][sign](found, other)
        return found

    def assigned(self) -> str:
        """The variable that an assignment begins with."""
        two = self.tokens[self.place : self.place + 2]
        return two[0][1] if len(two) == 2 and two[0][0] == "name" and two[1][1] in _ASSIGNS else ""

    def assignment(self, name: str) -> int:
        sign = self.tokens[self.place + 1][1]
        self.place += 2
        found = self.value()
        if sign != "=":
            level = next(level for level in _LEVELS if sign[0] in level)
            found = level[sign[0]](self.get(name), found)
        self.put(name, found)
        return found

    def unary(self) -> int:
        sign = self.sign()
        if sign in ("!", "-", "+"):
            self.place += 1
            found = self.unary()
            return int(not found) if sign == "!" else -found if sign == "-" else found
        if sign == "(":
            self.place += 1
            found = self.value()
            self.take("sign", ")")
            return found
        if sign in _STEPS:
            self.place += 1
            name = self.take("name")
            self.put(name, self.get(name) + _STEPS[sign])
            return self.get(name)
        return self.operand()

    def operand(self) -> int:
        if self.place < len(self.tokens) and self.tokens[self.place][0] == "number":
            return int(self.take("number"))
        name = self.take("name")
        found = self.get(name)
        if (sign := self.sign()) in _STEPS:
            self.place += 1
            self.put(name, found + _STEPS[sign])
        return found

    def sign(self) -> str:
        kind, text = self.tokens[self.place] if self.place < len(self.tokens) else ("", "")
        return text if kind == "sign" else ""

    def take(self, kind: str, text: str = "") -> str:
        if self.place >= len(self.tokens) or self.tokens[self.place][0] != kind:
            raise NotKnown
        found = self.tokens[self.place][1]
        if text and found != text:
            raise NotKnown
        self.place += 1
        return found


def evaluate(text: str, get: Callable[[str], int], put: Callable[[str, int], None]) -> int:
    """The value of an expression; raises `NotKnown`. Assignments in it are made."""
    tokens: list[tuple[str, str]] = []
    at = 0
    stripped = text.strip()
    while at < len(stripped):
        found = _TOKEN.match(stripped, at)
        if found is None:
            raise NotKnown
        tokens.append((str(found.lastgroup), found[str(found.lastgroup)]))
        at = found.end()
    if not tokens:
        return 0
    reader = _ArithmeticReader(tokens, get, put)
    value = reader.value()
    if reader.place != len(tokens):
        raise NotKnown
    return value
