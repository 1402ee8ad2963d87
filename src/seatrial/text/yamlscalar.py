"""YAML scalars as Kubernetes reads them. Knows nothing of files or places.

Kubernetes and Helm read YAML with sigs.k8s.io/yaml on top of go.yaml.in/yaml/v2 and convert it to JSON first. From
`resolve.go` and `decode.go` of yaml/v2 and `yaml.go` of sigs.k8s.io/yaml, tested against Helm:

- `y`, `yes`, `on`, `true` and `n`, `no`, `off`, `false` are booleans, each as `yes`, `Yes` or `YES`.
- `~`, `null`, `Null`, `NULL` and the empty scalar are null.
- `0x1F`, `0o17`, `017`, `0b11`, `+12` and `1_000` are integers; `08` is a number (8); `0o8` is a string.
- `1e3`, `.5` and `5.` are floats. A whole float becomes an integer, because JSON writes it without a point.
- Dates, `1:30` and `=` are strings, unlike in YAML 1.1.
- `.inf` and `.nan` are rejected: JSON cannot represent them.
- A key is always a string: `1` is "1" and `on` is "true"; null is rejected.
"""

from __future__ import annotations

import base64
import binascii
import math
import struct
from functools import lru_cache

from seatrial.model import lazy_re

Scalar = str | int | float | bool | None

PLAIN = ""
"""The tag of a scalar without quotes and without a tag: its type depends on its text."""
QUOTED = "tag:yaml.org,2002:str"

_TAGS = "tag:yaml.org,2002:"
_FIRST_CHARACTERS = frozenset("+-0123456789yYnNtTfFoO~.")
_WORDS: dict[str, Scalar] = {
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
}
_INTEGER = lazy_re.compile(r"([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|(0|[1-9][0-9]*))")
_BASES = (16, 2, 8, 10)
_FLOAT = lazy_re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_SEPARATOR = lazy_re.compile(r"(?<=[0-9])_(?=[0-9])")
"""The only underscore that Go allows in `.1_5`; yaml/v2 removes all of them from numbers that begin with a digit."""
_TYPE_TAGS: dict[type, str] = {bool: "!!bool", int: "!!int", float: "!!float", type(None): "!!null", str: "!!str"}


class BadScalar(Exception):
    """A scalar that Kubernetes rejects, with the error text of its YAML library."""


def scalar(tag: str, written: str) -> Scalar:
    """The value of a scalar."""
    if tag == QUOTED:
        return written
    if tag == PLAIN:
        return _plain(written)
    return _for_json(_tagged(tag, written))


def key(tag: str, written: str) -> str:
    """The value of a mapping key, as a string."""
    if tag == QUOTED or (tag == PLAIN and written[:1] not in _FIRST_CHARACTERS):
        return written
    match _resolved(written) if tag == PLAIN else _tagged(tag, written):
        case None:
            raise BadScalar("unsupported map key of type: null")
        case bool() as truth:
            return "true" if truth else "false"
        case float() as number:
            return _float_key(number)
        case found:
            return str(found)


DIGITS_MAX = 400
"""Longer numbers are no integers of 64 bits, and too long for a float as well."""


@lru_cache(maxsize=8192)
def _plain(written: str) -> Scalar:
    return _for_json(_resolved(written))


def _resolved(written: str) -> Scalar:
    if written and written[0] not in _FIRST_CHARACTERS:
        return written
    if written in _WORDS:
        return _WORDS[written]
    if written[0] in "yYnNtTfFoO~":
        return written
    digits = _SEPARATOR.sub("", written) if written[0] == "." else written.replace("_", "")
    if len(digits) <= DIGITS_MAX and (integer := _INTEGER.fullmatch(digits)):
        sign, *bases = integer.groups()
        number = next(int(found, base) for found, base in zip(bases, _BASES, strict=True) if found)
        if number < 2**63 or (not sign and number < 2**64):
            return -number if sign == "-" else number
    if _FLOAT.fullmatch(digits) and math.isfinite(floating := float(digits)):
        return floating
    return written


def _tagged(tag: str, written: str) -> Scalar:
    wanted = tag.replace(_TAGS, "!!", 1)
    if wanted == "!!binary":
        try:
            return base64.b64decode(written, validate=True).decode(errors="replace")
        except binascii.Error:
            raise BadScalar("!!binary value contains invalid base64 data") from None
    if wanted not in _TYPE_TAGS.values() or wanted == "!!str":
        return written
    found = _resolved(written)
    given = _TYPE_TAGS[type(found)]
    if wanted == "!!float" and type(found) is int:
        return float(found)
    if wanted != given:
        raise BadScalar(f"cannot decode {given} `{written}` as a {wanted}")
    return found


def _for_json(found: Scalar) -> Scalar:
    """The value after a conversion to JSON, where a whole float equals an integer."""
    if type(found) is int:
        return found if found < 2**63 else float(found)
    if type(found) is not float:
        return found
    if not math.isfinite(found):
        words = "NaN" if math.isnan(found) else "+Inf" if found > 0 else "-Inf"
        raise BadScalar(f"json: unsupported value: {words}")
    return int(found) if found.is_integer() and -(2**63) <= found < 2**63 else found


def _float_key(number: float) -> str:
    """Go's shortest form of a 32-bit float: how a float becomes a key."""
    if not math.isfinite(number):
        return ".nan" if math.isnan(number) else ".inf" if number > 0 else "-.inf"
    try:
        packed = struct.pack("<f", number)
    except OverflowError:
        return ".inf" if number > 0 else "-.inf"
    single = struct.unpack("<f", packed)[0]
    tries = (f"{single:.{digits}e}" for digits in range(9))
    shortest = next(digits for digits in tries if struct.pack("<f", float(digits)) == packed)
    mantissa, _, exponent = shortest.partition("e")
    power = int(exponent)
    if not -4 <= power < 6:
        return f"{mantissa}e{power:+03d}"
    decimals = len(mantissa.lstrip("-").replace(".", "")) - 1 - power
    return f"{float(shortest):.{max(0, decimals)}f}"
