"""The first lines of a report: what of the input was not rehearsed. Printed also where only findings are asked for."""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.model.result import Result
from seatrial.report.page import Line, Page, Piece, line, quoted

SHOWN_MAX = 5


def not_rehearsed(result: Result, page: Page) -> Iterator[Line]:
    """One line each, with the command that gets it."""
    found = sentences_of(result)
    shown = found if page.verbose else found[:SHOWN_MAX]
    for words in shown:
        yield from (line(Piece(text, "doubt")) for text in quoted(words, page, first="", rest="  "))
    if more := len(found) - len(shown):
        yield line(Piece(f"Not rehearsed: {more} more (-v shows all)", "doubt"))


def sentences_of(result: Result) -> list[str]:
    """All of it as text."""
    return [f"Not rehearsed: {part}" for part in result.not_rehearsed]
