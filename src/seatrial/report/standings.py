"""Engines or inputs compared: one row each, one column for each step of the trial."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from seatrial.model.result import Ending, Standing, Stop
from seatrial.report.page import Line, Page, Role
from seatrial.report.table import table

VERDICTS = {"ok at a retry": "ok on retry"}
ROLES: dict[str, Role] = {
    "ok": "good",
    "ok on retry": "doubt",
    "likely fails": "bad",
    "likely hangs": "bad",
    "may fail": "doubt",
    "may hang": "doubt",
    "fails": "bad",
    "hangs": "bad",
}


def standings_table(heading: str, found: Sequence[Standing], page: Page) -> Iterator[Line]:
    if not found:
        return
    count = max(len(one.endings) for one in found)
    rows = [(heading, *(f"step {n}" for n in range(1, count + 1)), "first stopped by")]
    rows += [
        (one.engine, *map(_ending, one.endings), *("-" for _ in range(len(one.endings), count)), _stop(one.stopped_by))
        for one in found
    ]
    yield from table(rows, page, lambda word: ROLES.get(word, ""), indent="  ")


def _ending(found: Ending) -> str:
    """`ok`, `ok, leaves 2`, `may fail`."""
    verdict = VERDICTS.get(found.verdict, found.verdict)
    return f"{verdict}, leaves {found.leaves}" if found.leaves else verdict


def _stop(found: Stop | None) -> str:
    """`Gate/default/north: no matches for kind "Gate"`, or nothing."""
    if found is None:
        return ""
    return f"{found.object}: {found.why}" if found.object else found.why
