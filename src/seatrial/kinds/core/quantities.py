"""Quantities: `500m`, `1Gi`, `2e3`. Compared and added in exact arithmetic, parsed and printed, as Kubernetes does."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

from seatrial.model import lazy_re

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
_QUANTITY = lazy_re.compile(r"^([+-]?[0-9.]+)(?:[eE]([+-]?[0-9]+)|([numkKMGTPE]i?|))$")
_BINARY = ("Ei", "Pi", "Ti", "Gi", "Mi", "Ki")

# From apimachinery's `api/resource/quantity.go`.
_FORMAT_WRONG = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_SUFFIX_WRONG = "unable to parse quantity's suffix"
_NUMBER_WRONG = "unable to parse numeric part of quantity"

_PARTS = lazy_re.compile("([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)")
_NUMBER = lazy_re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)")
_EXPONENT = lazy_re.compile("[eE][-+]?[0-9]+")
_EXPONENT_MAX = 30


@lru_cache(maxsize=1024)
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


@lru_cache(maxsize=1024)
def quantity_fault(text: str) -> str:
    """Why a text is not a quantity; empty if it is one."""
    found = _PARTS.fullmatch(text)
    if found is None:
        return _FORMAT_WRONG
    if found[2] not in SUFFIXES and not _EXPONENT.fullmatch(found[2]):
        return _SUFFIX_WRONG
    return "" if _NUMBER.fullmatch(found[1]) else _NUMBER_WRONG


def canonical(value: str | int | float) -> str:
    """The canonical form of a quantity: `0.5` is `500m`, `1024Mi` is `1Gi`, `20e4` is `200e3`."""
    much, found = amount(value), _PARTS.fullmatch(str(value))
    if not much or found is None:
        return "0" if not much else str(value)
    number, suffix = found.groups()
    if not suffix.endswith("i") and _is_kept(number, _exponent(suffix)):
        return str(value)
    if _EXPONENT.fullmatch(suffix):
        power = next(
            power for power in range(_EXPONENT_MAX, -10, -3) if (much / Fraction(10) ** power).denominator == 1
        )
        return f"{much / Fraction(10) ** power}{f'e{power}' if power else ''}"
    binary = suffix.endswith("i") and much.denominator == 1
    units = {name: unit for name, unit in SUFFIXES.items() if not name or name.endswith("i") == binary}
    fitting = [name for name, unit in units.items() if (much / unit).denominator == 1]
    if not fitting:
        return str(value)
    best = max(fitting, key=lambda name: units[name])
    return f"{much / units[best]}{best}"


def _exponent(suffix: str) -> int:
    if _EXPONENT.fullmatch(suffix):
        return int(suffix[1:])
    return next(power for power in range(18, -10, -3) if Fraction(10) ** power == SUFFIXES[suffix])


def _is_kept(number: str, exponent: int) -> bool:
    """Whether the parser keeps a decimal text as it is: `1.500` and `1E3`, which it does not print itself."""
    whole, _, fraction = number.lstrip("+-").partition(".")
    digits = (whole.lstrip("0") or "0") + fraction
    return (exponent - len(fraction)) % 3 == 0 and not digits.endswith("000") and not digits.startswith("0")
