"""Error texts as patterns: `secret "{secret}" not found`. Knows no error and no table.

In a pattern, `{name}` is one word, ` ... ` is a gap within the same message, quotes may be missing, and case does not
matter. Searching is linear in the text: a part between gaps has no repetition but bounded words, and a gap is bounded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from msgspec import Struct

from seatrial.model import lazy_re

GAP = " ... "
GAP_MAX = 1_500
"""Characters that a gap may span: the URL of a webhook, the dump of a pod template."""
WORD = r"[^\s\",;]{1,253}"
STARTS_MAX = 200
"""Occurrences of the first part that are tried."""
FIELD = lazy_re.compile(r"\{(\w+)\}")
_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}


class ErrorPattern(Struct, frozen=True):
    """One form of an error text."""

    text: str
    """As the table shows it."""
    parts: tuple[re.Pattern[str], ...]
    literal: int
    """Characters that are not names or gaps: the more, the more specific."""


class Match(Struct, frozen=True):
    """Where a pattern was found, and the names in it."""

    start: int
    end: int
    names: dict[str, str]


class Lowered(Struct, frozen=True):
    """A text beside its lower-case form of the same length."""

    text: str
    lower: str


def lowered(text: str) -> Lowered:
    """Only ASCII letters change: other letters can change the length of a text."""
    return Lowered(text, text.translate(_LOWER))


@cache
def pattern(text: str) -> ErrorPattern:
    parts = tuple(_compiled(part) for part in text.split(GAP))
    return ErrorPattern(text, parts, len(FIELD.sub("", text.replace(GAP, ""))))


def find(wanted: ErrorPattern, text: Lowered) -> Match | None:
    """The first place where all parts follow one another. A gap ends where the first part begins again."""
    first, *rest = wanted.parts
    starts = first.finditer(text.lower)
    found = next(starts, None)
    for _ in range(STARTS_MAX):
        if found is None:
            return None
        after = next(starts, None)
        ends = after.start() if after else len(text.lower)
        matches = list(_following(found, rest, text.lower, ends))
        if len(matches) == len(wanted.parts):
            return Match(found.start(), matches[-1].end(), _names(matches, text.text))
        found = after
    return None


def _following(first: re.Match[str], rest: list[re.Pattern[str]], text: str, ends: int) -> Iterator[re.Match[str]]:
    yield first
    place = first.end()
    for part in rest:
        found = part.search(text, place, min(ends, place + GAP_MAX))
        if found is None:
            return
        yield found
        place = found.end()


def _names(matches: list[re.Match[str]], text: str) -> dict[str, str]:
    spans = {name: match.span(name) for match in matches for name in match.groupdict()}
    found = {name: text[start:end].rstrip(".:)]") for name, (start, end) in spans.items()}
    return {name: value for name, value in found.items() if value.strip(".")}


def _compiled(part: str) -> re.Pattern[str]:
    pieces = FIELD.split(part)
    return re.compile(
        "".join(
            f"(?P<{piece}>{WORD})" if number % 2 else re.escape(piece.translate(_LOWER)).replace('"', '"?')
            for number, piece in enumerate(pieces)
        )
    )
