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
      (?P<number>0[xX][0-9a-fA-F]+|\d+)
      | \$?\{?(?P<name>[A-Za-z_]\w*)\}?
      | (?P<sign>\+\+|--|<<=|>>=|\*\*|<<|>>|[-+*/%&|^]=|<=|>=|==|!=|&&|\|\||[-+*/%()<>!=&|^~?:,])
    )
    """,
    re.VERBOSE,
)
DIGITS_MAX = 40
DEPTH_MAX = 25
"""Of parentheses and signs in each other."""


def _quotient(a: int, b: int) -> int:
    found = abs(a) // abs(b)
    return found if (a < 0) == (b < 0) else -found


def _shift(a: int, b: int) -> int:
    return a << b if 0 <= b < 64 else 0


_LEVELS: tuple[dict[str, Callable[[int, int], int]], ...] = (
    {"||": lambda a, b: int(bool(a or b))},
    {"&&": lambda a, b: int(bool(a and b))},
    {"|": operator.or_},
    {"^": operator.xor},
    {"&": operator.and_},
    {"==": lambda a, b: int(a == b), "!=": lambda a, b: int(a != b)},
    {
        "<": lambda a, b: int(a < b),
        ">": lambda a, b: int(a > b),
        "<=": lambda a, b: int(a <= b),
        ">=": lambda a, b: int(a >= b),
    },
    {"<<": _shift, ">>": lambda a, b: a >> min(max(b, 0), 63)},
    {"+": operator.add, "-": operator.sub},
    {"*": operator.mul, "/": _quotient, "%": lambda a, b: a - b * _quotient(a, b)},
)
"""From the weakest operators to the strongest."""
_STEPS = {"++": 1, "--": -1}
_ASSIGNS = frozenset(("=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="))
_DECIDED = {"||": True, "&&": False}
"""The left sides after which the right side is not evaluated."""


class NotKnown(Exception):
    """A variable that only a run would tell, or text that is not read here."""


class _ArithmeticReader(Struct):
    tokens: list[tuple[str, str]]
    get: Callable[[str], int]
    put: Callable[[str, int], None]
    place: int = 0
    skipped: int = 0
    """How many expressions around are not evaluated."""
    depth: int = 0

    def whole(self) -> int:
        """Expressions with commas between them."""
        found = self.chosen()
        while self.sign() == ",":
            self.place += 1
            found = self.chosen()
        return found

    def chosen(self) -> int:
        """An assignment, or `a ? b : c`."""
        self.depth += 1
        if self.depth > DEPTH_MAX:
            raise NotKnown
        found = self.assignment(name) if (name := self.assigned()) else self.value()
        if self.sign() == "?":
            self.place += 1
            yes = self.unless(not found, self.chosen)
            self.take("sign", ":")
            no = self.unless(bool(found), self.chosen)
            found = yes if found else no
        self.depth -= 1
        return found

    def unless(self, skipped: bool, read: Callable[[], int]) -> int:
        self.skipped += skipped
        found = read()
        self.skipped -= skipped
        return found

    def value(self, level: int = 0) -> int:
        if level == len(_LEVELS):
            return self.power()
        found = self.value(level + 1)
        while (sign := self.sign()) in _LEVELS[level]:
            self.place += 1
            decided = sign in _DECIDED and bool(found) == _DECIDED[sign]
            other = self.unless(decided, lambda: self.value(level + 1))
            if sign in "/%" and not other:
                if not self.skipped:
                    raise NotKnown
                other = 1
            found = _wrapped(_LEVELS[level][sign](found, other))
        return found

    def power(self) -> int:
        found = self.unary()
        if self.sign() != "**":
            return found
        self.place += 1
        exponent = self.power()
        if not 0 <= exponent <= 64:
            raise NotKnown
        return _wrapped(found**exponent)

    def assigned(self) -> str:
        """The variable that an assignment begins with."""
        two = self.tokens[self.place : self.place + 2]
        return two[0][1] if len(two) == 2 and two[0][0] == "name" and two[1][1] in _ASSIGNS else ""

    def assignment(self, name: str) -> int:
        sign = self.tokens[self.place + 1][1]
        self.place += 2
        found = self.chosen()
        if sign != "=":
            level = next(level for level in _LEVELS if sign[:-1] in level)
            if sign in ("/=", "%=") and not found:
                raise NotKnown
            found = _wrapped(level[sign[:-1]](self.read(name), found))
        self.write(name, found)
        return found

    def read(self, name: str) -> int:
        return 0 if self.skipped else self.get(name)

    def write(self, name: str, number: int) -> None:
        if not self.skipped:
            self.put(name, number)

    def unary(self) -> int:
        sign = self.sign()
        if sign in ("!", "-", "+", "~"):
            self.place += 1
            self.depth += 1
            if self.depth > DEPTH_MAX:
                raise NotKnown
            found = self.unary()
            self.depth -= 1
            return {"!": int(not found), "-": -found, "~": ~found}.get(sign, found)
        if sign == "(":
            self.place += 1
            found = self.whole()
            self.take("sign", ")")
            return found
        if sign in _STEPS:
            self.place += 1
            name = self.take("name")
            self.write(name, self.read(name) + _STEPS[sign])
            return self.read(name)
        return self.operand()

    def operand(self) -> int:
        if self.place < len(self.tokens) and self.tokens[self.place][0] == "number":
            return _number(self.take("number"))
        name = self.take("name")
        found = self.read(name)
        if (sign := self.sign()) in _STEPS:
            self.place += 1
            self.write(name, found + _STEPS[sign])
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


def _number(text: str) -> int:
    """Hexadecimal, octal or decimal."""
    if len(text) > DIGITS_MAX:
        raise NotKnown
    try:
        return _wrapped(int(text, 16 if text[:2] in ("0x", "0X") else 8 if text[0] == "0" else 10))
    except ValueError:
        raise NotKnown from None


def _wrapped(number: int) -> int:
    """As in 64 bits."""
    return (number + 2**63) % 2**64 - 2**63


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
    value = reader.whole()
    if reader.place != len(tokens):
        raise NotKnown
    return value
