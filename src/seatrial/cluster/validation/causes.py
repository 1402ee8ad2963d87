"""The API server's error texts for a field, as in apimachinery's `util/validation/field/errors.go`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

import msgspec
from msgspec import Raw

from seatrial.model import lazy_re
from seatrial.model.resource import Body

_Rewrite = str | Callable[[re.Match[str]], str]


def _go_map(found: re.Match[str]) -> str:
    labels = msgspec.json.decode(found[1].encode(), type=dict[str, str])
    pairs = ", ".join(f'"{key}":"{value}"' for key, value in sorted(labels.items()))
    return f"Invalid value: map[string]string{{{pairs}}}: `selector`"


# What minors before the named one wrote instead.
_BEFORE: tuple[tuple[int, re.Pattern[str], _Rewrite], ...] = (
    (32, lazy_re.compile(r"Too long: may not be more than (\d+) bytes"), r"Too long: must have at most \1 bytes"),
    (34, lazy_re.compile(r"Invalid value: null: `selector`"), "Invalid value: map[string]string(nil): `selector`"),
    (34, lazy_re.compile(r"Invalid value: null:"), 'Invalid value: "null":'),
    (34, lazy_re.compile(r"Invalid value: (\{.*\}): `selector`"), _go_map),
)

# What a minor accepts that those before it reject.
_SINCE: dict[str, int] = {
    "spec.minReplicas: Invalid value: 0: must be greater than or equal to 1": 37,  # HPAScaleToZero is on by default
}


def is_refused(minor: int, sentence: str) -> bool:
    """Whether a Kubernetes of this minor rejects what 1.34 rejects with this text."""
    return minor < _SINCE.get(sentence, minor + 1)


def in_words_of(minor: int, sentence: str) -> str:
    """An error text of Kubernetes 1.34 as an older minor wrote it, for common values."""
    for first, pattern, instead in _BEFORE:
        if minor < first:
            sentence = pattern.sub(instead, sentence)
    return sentence


def invalid(field: str, value: Any, detail: str) -> str:
    return f"{field}: Invalid value: {shown(value)}: {detail}"


def required(field: str, detail: str = "") -> str:
    return f"{field}: Required value: {detail}" if detail else f"{field}: Required value"


def duplicate(field: str, value: Any) -> str:
    return f"{field}: Duplicate value: {shown(value)}"


def unsupported(field: str, value: Any, supported: Iterable[str]) -> str:
    """The order of `supported` is the server's: most lists are sorted, some are not."""
    listed = ", ".join(f'"{name}"' for name in supported)
    return f"{field}: Unsupported value: {shown(value)}: supported values: {listed}"


def forbidden(field: str, detail: str) -> str:
    return f"{field}: Forbidden: {detail}"


def not_found(field: str, value: Any) -> str:
    return f"{field}: Not found: {shown(value)}"


def too_long(field: str, bytes_max: int) -> str:
    return f"{field}: Too long: may not be more than {bytes_max} bytes"


def shown(value: Any) -> str:
    """A value as Go prints it in errors: JSON with sorted keys, and escaped angle brackets and ampersands."""
    text = msgspec.json.encode(value, order="sorted").decode()
    if isinstance(value, str):
        return text
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def internal(body: Body, fields: Iterable[str]) -> Raw:
    """An object as Go prints its internal type: every field by its Go name, in the order of the struct."""
    found = {name: body.get(name[:1].lower() + name[1:], body.get(name[:2].lower() + name[2:])) for name in fields}
    return Raw(msgspec.json.encode(found))


def each(field: str, value: Any, problems: Iterable[str]) -> list[str]:
    """One error text for each problem of a value."""
    return [invalid(field, value, problem) for problem in problems]
