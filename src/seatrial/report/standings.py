"""Engines, or inputs, side by side: a row for each, a column for each step of the trial."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from seatrial.report.page import Line, Page, Piece, line, quoted
from seatrial.result import Ending, Standing, Stop


def standings_table(heading: str, found: Sequence[Standing], page: Page) -> Iterator[Line]:
    if not found:
        return
    count = max(len(one.endings) for one in found)
    rows = [(heading, *(f"step {n}" for n in range(1, count + 1)), "first stopped by")]
    rows += [
        (one.engine, *map(_ending, one.endings), *("-" for _ in range(len(one.endings), count)), _stop(one.stopped_by))
        for one in found
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(count + 1)]
    for number, row in enumerate(rows):
        cells = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=False))
        first, *more = quoted(f"  {cells}  {row[-1]}".rstrip(), page, first="", rest="    ")
        yield line(Piece(first, "strong") if number == 0 else first)
        yield from (line(text) for text in more)


def _ending(found: Ending) -> str:
    """`ok`, `ok, leaves 2`, `may fail`."""
    return f"{found.verdict}, leaves {found.leaves}" if found.leaves else found.verdict


def _stop(found: Stop | None) -> str:
    """`Gate/default/north: no matches for kind "Gate"`, or nothing."""
    if found is None:
        return ""
    return f"{found.object}: {found.why}" if found.object else found.why
