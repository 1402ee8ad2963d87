"""Pasted text as one line of plain words: no colours, no JSON around messages, no escapes, no line breaks.

Knows the shapes in which terminals and controllers print errors, and nothing of what the errors mean.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec import Struct

from seatrial.model import lazy_re

TEXT_MAX = 1_000_000
"""Characters that are read: the last ones, because a log ends with its error."""
JSON_LINE_MAX = 100_000
JSON_KEYS = ("controller", "logger", "controllerKind", "reason", "msg", "message", "error", "err")
"""Fields of a log line, in the order in which a person would read them."""

_COLOUR = lazy_re.compile(r"\x1b\[[0-9;?]{0,32}[A-Za-z]")
_CONTROL = lazy_re.compile(r"[\x00-\x08\x0b-\x1f\x7f\u2500-\u257f]")
"""Control characters, and the frames that some tools draw around errors."""
_ESCAPED_SPACE = lazy_re.compile(r"\\[nrt]")
_ESCAPED_QUOTE = lazy_re.compile(r"\\{1,8}(?=[\"'])")
_QUOTES = str.maketrans("'`\u2018\u2019\u201c\u201d", '""""""')
_SPACES = lazy_re.compile(r"\s+")


class Pasted(Struct, frozen=True):
    text: str
    unbroken: str
    """The same with words joined over line ends, as a terminal breaks them; only tried if nothing else is found."""
    cut: bool
    """Whether the beginning was left out."""


def read(text: str) -> Pasted:
    kept = text[-TEXT_MAX:]
    lines = list(dict.fromkeys(_lines(kept)))
    return Pasted(_plain(" ".join(lines)), _plain("".join(lines)), len(kept) < len(text))


def _lines(text: str) -> Iterator[str]:
    for line in _COLOUR.sub("", text).split("\n"):
        yield _message(_CONTROL.sub(" ", line))


def _message(line: str) -> str:
    """The messages of a log line in JSON; other lines as they are."""
    stripped = line.strip()
    if not (stripped.startswith("{") and stripped.endswith("}")) or len(stripped) > JSON_LINE_MAX:
        return line
    try:
        found = msgspec.json.decode(stripped)
    except (msgspec.DecodeError, RecursionError):
        return line
    words = [str(found[key]) for key in JSON_KEYS if isinstance(found.get(key), str)]
    return f"{': '.join(words)} " if words else line


def _plain(text: str) -> str:
    spaced = _ESCAPED_SPACE.sub(" ", text)
    return _SPACES.sub(" ", _ESCAPED_QUOTE.sub("", spaced).translate(_QUOTES)).strip()
