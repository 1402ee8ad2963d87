"""Quantities as the API server parses and prints them. Their values are in `kinds.core.quantities`."""

from __future__ import annotations

import re
from functools import lru_cache

from seatrial.kinds.core.quantities import SUFFIXES
from seatrial.kinds.core.quantities import amount as _amount

# From apimachinery's `api/resource/quantity.go`.
_FORMAT_WRONG = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_SUFFIX_WRONG = "unable to parse quantity's suffix"
_NUMBER_WRONG = "unable to parse numeric part of quantity"

_split = re.compile("([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)").fullmatch
_is_number = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)").fullmatch
_is_exponent = re.compile("[eE][-+]?[0-9]+").fullmatch


amount = lru_cache(maxsize=1024)(_amount)


@lru_cache(maxsize=1024)
def quantity_fault(text: str) -> str:
    """Why a text is not a quantity; empty if it is one."""
    found = _split(text)
    if found is None:
        return _FORMAT_WRONG
    if found[2] not in SUFFIXES and not _is_exponent(found[2]):
        return _SUFFIX_WRONG
    return "" if _is_number(found[1]) else _NUMBER_WRONG


def canonical(value: str | int | float) -> str:
    """The canonical form of a quantity: `0.5` is `500m`, `1024Mi` is `1Gi`."""
    much = amount(value)
    if not much:
        return "0"
    binary = str(value).endswith("i")
    units = {name: unit for name, unit in SUFFIXES.items() if not name or name.endswith("i") == binary}
    fitting = [name for name, unit in units.items() if (much / unit).denominator == 1]
    if not fitting:
        return str(value)
    suffix = max(fitting, key=lambda name: units[name])
    return f"{much / units[suffix]}{suffix}"
