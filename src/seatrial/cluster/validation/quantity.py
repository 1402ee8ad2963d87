"""Quantities of resources: whether a text is one, and how much it is. Knows nothing of what is counted."""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache

# From apimachinery's `api/resource/quantity.go`.
_FORMAT_WRONG = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_SUFFIX_WRONG = "unable to parse quantity's suffix"
_NUMBER_WRONG = "unable to parse numeric part of quantity"

_split = re.compile("([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)").fullmatch
_is_number = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)").fullmatch
_is_exponent = re.compile("[eE][-+]?[0-9]+").fullmatch

_SUFFIXES = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "": Fraction(1),
    **{suffix: Fraction(1000**power) for power, suffix in enumerate("kMGTPE", 1)},
    **{f"{suffix}i": Fraction(1024**power) for power, suffix in enumerate("KMGTPE", 1)},
}


@lru_cache(maxsize=1024)
def quantity_fault(text: str) -> str:
    """Why a text is no quantity; empty where it is one."""
    found = _split(text)
    if found is None:
        return _FORMAT_WRONG
    if found[2] not in _SUFFIXES and not _is_exponent(found[2]):
        return _SUFFIX_WRONG
    return "" if _is_number(found[1]) else _NUMBER_WRONG


@lru_cache(maxsize=1024)
def amount(value: str | int | float) -> Fraction:
    """How much a quantity is, where it is one."""
    found = _split(str(value))
    assert found is not None
    number, suffix = found[1], found[2]
    if suffix in _SUFFIXES:
        return Fraction(number.rstrip(".")) * _SUFFIXES[suffix]
    return Fraction(number.rstrip(".")) * Fraction(10) ** int(suffix[1:])


def canonical(value: str | int | float) -> str:
    """As the server writes a quantity back: `0.5` is `500m`, `1024Mi` is `1Gi`."""
    much = amount(value)
    if str(value).endswith("i"):
        suffixes = [(name, unit) for name, unit in _SUFFIXES.items() if name.endswith("i") or not name]
    else:
        suffixes = [(name, unit) for name, unit in _SUFFIXES.items() if not name.endswith("i")]
    for suffix, unit in reversed(suffixes):
        if much and (much / unit).denominator == 1:
            return f"{much / unit}{suffix}"
    return "0" if not much else str(value)
