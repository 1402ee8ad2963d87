"""Findings that the user ignores: where that is written, and why. Only a verbose report lists them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from seatrial.model.acceptance import Ignored
from seatrial.report import concise
from seatrial.report.page import Line, Page, Piece, line, sentences


def ignored_section(found: Sequence[Ignored], page: Page) -> Iterator[Line]:
    if not found or not page.verbose:
        return
    yield line(Piece("Ignored findings:", "strong"))
    for one in found:
        yield from (line("  ", *words) for words in concise.lines([one.finding]))
        yield from (line(words) for words in sentences(reason_of(one), page, first="    ", rest="      "))
    yield ()


def reason_of(one: Ignored) -> str:
    """`ignored by the comment at job.yaml:9: it has run before`"""
    return f"ignored by the {one.by.source} at {one.by.place}: {one.by.reason or 'no reason given'}"
