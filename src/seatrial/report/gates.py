"""Webhooks that are asked: about what, what they need, and what of it was there, engine by engine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from seatrial.report.page import Line, Page, Piece, line, quoted, sentences
from seatrial.result import Asked, Gate

GATES_MAX = 8
COLUMNS = ("", "is", "definition", "Service", "endpoint", "caBundle", "and is then")
HEADING = "Webhooks that are asked, and what was there when an engine first came to one (lazy schedule):"


def gates_section(found: Sequence[Gate], page: Page) -> Iterator[Line]:
    if not found:
        return
    yield line(Piece(HEADING, "strong"))
    shown = found if page.verbose else found[:GATES_MAX]
    for gate in shown:
        yield from _gate(gate, page)
    if len(shown) < len(found):
        yield line(Piece(f"  and {len(found) - len(shown)} more (-v shows all)", "faint"))
    yield ()


def _gate(gate: Gate, page: Page) -> Iterator[Line]:
    where = f", {gate.place}" if gate.place else ""
    head = f"{gate.webhook} of {gate.owner} ({gate.policy}{where})"
    said = (*(f"about {words}" for words in gate.about), f"needs {'; '.join(gate.needs)}")
    yield from (line(text) for text in quoted(head, page, first="  ", rest="    "))
    for words in said:
        yield from (line(text) for text in sentences(words, page, first="    ", rest="      "))
    yield from _moments(gate.moments)


def _moments(moments: Sequence[Asked]) -> Iterator[Line]:
    if not moments:
        return
    rows = [COLUMNS, *((m.engine, m.act, m.definition, m.service, m.endpoint, m.ca_bundle, m.then) for m in moments)]
    kept = [n for n in range(len(COLUMNS)) if any(row[n] != "-" for row in rows[1:])]
    widths = {n: max(len(row[n]) for row in rows) for n in kept}
    for row in rows:
        yield line("    ", "  ".join(row[n].ljust(widths[n]) for n in kept).rstrip())
