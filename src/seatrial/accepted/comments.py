"""`# seatrial: ignore[rule, ...] reason` in a file: which rules, for which lines. Knows no format of files."""

from __future__ import annotations

import re
from collections.abc import Iterator

from seatrial.model import lazy_re
from seatrial.model.acceptance import Suppression
from seatrial.model.resource import Place
from seatrial.text.source import Text

MARK = "seatrial:"
FILE_BYTES_MAX = 5 * 1024 * 1024
"""No template is larger; recordings of programs may be."""

_COMMENT = lazy_re.compile(r"(?:#|//|/\*)[ \t]*seatrial:[ \t]*ignore\b(?:\[([^\]]*)\])?(.*)")
_ENDS = lazy_re.compile(r"\*/.*")
_ALONE = ("", "{{", "{{-")
"""What may be before a comment that is about the line below."""


def comments_in(text: Text) -> Iterator[Suppression]:
    """Every rule of every comment; a comment that names none is one with an empty rule."""
    if MARK not in text.content or len(text.content) > FILE_BYTES_MAX:
        return
    found: dict[int, re.Match[str]] = {}
    for number, line in enumerate(text.content.split("\n"), start=1):
        if MARK in line and (comment := _COMMENT.search(line)):
            found[number] = comment
    for number, comment in found.items():
        rules = [rule.strip() for rule in (comment[1] or "").split(",")]
        reason = _ENDS.sub("", comment[2]).strip(" \t\r:-")
        for rule in dict.fromkeys(filter(None, rules)) or ("",):
            place = Place(text.path, number)
            yield Suppression(rule, "comment", place, reason, lines=_lines(number, found))


def _lines(number: int, found: dict[int, re.Match[str]]) -> tuple[int, ...]:
    """Its own line; if the comment is alone on it, also the line below, or below the comments that follow."""
    if not _is_alone(found[number]):
        return (number,)
    below = number + 1
    while below in found and _is_alone(found[below]):
        below += 1
    return number, below


def _is_alone(comment: re.Match[str]) -> bool:
    return comment.string[: comment.start()].strip() in _ALONE
