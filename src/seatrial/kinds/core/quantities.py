"""Quantities: `500m`, `1Gi`, `2e3`. Compared and added in exact arithmetic, as Kubernetes does."""

from __future__ import annotations

import re
from fractions import Fraction

SUFFIXES = {
    "": Fraction(1),
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "k": Fraction(10**3),
    "M": Fraction(10**6),
    "G": Fraction(10**9),
    "T": Fraction(10**12),
    "P": Fraction(10**15),
    "E": Fraction(10**18),
    "Ki": Fraction(2**10),
    "Mi": Fraction(2**20),
    "Gi": Fraction(2**30),
    "Ti": Fraction(2**40),
    "Pi": Fraction(2**50),
    "Ei": Fraction(2**60),
}
_QUANTITY = re.compile(r"^([+-]?[0-9.]+)(?:[eE]([+-]?[0-9]+)|([numkKMGTPE]i?|))$")
_BINARY = ("Ei", "Pi", "Ti", "Gi", "Mi", "Ki")


def amount(quantity: object) -> Fraction:
    """The number that a quantity stands for; zero for null and invalid quantities."""
    found = _QUANTITY.match(str(quantity if quantity is not None else "0"))
    if found is None or found[1] in (".", "+", "-"):
        return Fraction(0)
    number, exponent, suffix = found.groups()
    if exponent:
        return Fraction(number) * Fraction(10) ** int(exponent)
    return Fraction(number) * SUFFIXES.get(suffix or "", Fraction(1))


def written(total: Fraction, *, binary: bool = False) -> str:
    """A sum as the API server writes it: whole, in milli, or in the largest binary unit that divides it."""
    if total.denominator != 1:
        return f"{-(-total * 1000 // 1)}m"
    for suffix in _BINARY if binary and total else ():
        if total % SUFFIXES[suffix] == 0:
            return f"{total / SUFFIXES[suffix]}{suffix}"
    return str(total)
