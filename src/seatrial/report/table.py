"""Rows of text in columns; the last column is folded. Knows nothing of the content."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from seatrial.report.page import Line, Page, Piece, Role, columns, line, quoted


def table(rows: Sequence[Sequence[str]], page: Page, role: Callable[[str], Role], *, indent: str) -> Iterator[Line]:
    """The lines of a table whose first row is its head; `role` gives the colour of the other cells."""
    widths = [max(columns(row[n]) for row in rows) for n in range(len(rows[0]) - 1)]
    for number, (*cells, last) in enumerate(rows):
        head = number == 0
        start = [cell + " " * (width - columns(cell) + 2) for cell, width in zip(cells, widths, strict=True)]
        before = " " * (len(indent) + sum(columns(cell) for cell in start))
        first, *more = (text[len(before) :] for text in quoted(last, page, first=before, rest=before))
        shown = [Piece(cell, "strong" if head else role(cell.rstrip())) for cell in start]
        yield line(indent, *shown, Piece(first, "strong" if head else role(last)))
        yield from (line(before, Piece(text, role(last))) for text in more)
