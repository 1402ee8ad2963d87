"""The page of a diagnosed error text. Decides nothing."""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.explain.diagnosis import Diagnosis, LikelyCause
from seatrial.explain.pasted import TEXT_MAX
from seatrial.report.page import Line, Page, Piece, line, printed, quoted, sentences

CAUSES_MAX = 4
"""Causes that are shown; -v shows all."""
MARGIN = "  "


def render(found: Diagnosis, page: Page) -> str:
    return printed(_lines(found, page), page)


def _lines(found: Diagnosis, page: Page) -> Iterator[Line]:
    yield from (line(Piece(words, "bad")) for words in quoted(found.excerpt, page, first="", rest=""))
    yield ()
    yield from _facts(found, page)
    yield ()
    yield line(Piece("Likely causes, in this order:", "strong"))
    shown = found.causes if page.verbose else found.causes[:CAUSES_MAX]
    for number, cause in enumerate(shown, start=1):
        yield from _cause(number, cause, page)
    if len(found.causes) > len(shown):
        yield line(f"{MARGIN}and {len(found.causes) - len(shown)} more (-v shows them)")
    yield ()
    yield line(Piece("To decide:", "strong"))
    yield from _command(found.decide, page)
    for answer in found.answers:
        yield from (line(words) for words in sentences(answer, page, first=f"{MARGIN}- ", rest=f"{MARGIN}  "))
    yield ()
    yield line(Piece("To reproduce:", "strong"))
    yield from _command(found.check, page)
    yield from _after(found, page)


def _facts(found: Diagnosis, page: Page) -> Iterator[Line]:
    where = " ".join(part for part in (found.context.engine, found.context.step) if part)
    hook = f"{found.context.hook} hook" if found.context.hook else ""
    facts = (
        ("phase", found.phase_about),
        ("object", found.object),
        ("seen in", ", ".join(part for part in (where, hook) if part)),
    )
    for name, about in facts:
        if about:
            first, *rest = sentences(about, page, first=" " * 9, rest=" " * 9)
            yield line(Piece(f"{name:<9}", "faint"), first[9:])
            yield from (line(words) for words in rest)


def _cause(number: int, cause: LikelyCause, page: Page) -> Iterator[Line]:
    start, margin = f"{MARGIN}{number}. ", MARGIN + "   "
    if cause.rule:
        yield line(start, Piece(cause.rule, "strong"), f" ({cause.code})")
        start = margin
    yield from (line(words) for words in sentences(cause.about, page, first=start, rest=margin))


def _command(command: str, page: Page) -> Iterator[Line]:
    return (line(Piece(words, "place")) for words in quoted(command, page, first=f"{MARGIN}$ ", rest=f"{MARGIN}    "))


def _after(found: Diagnosis, page: Page) -> Iterator[Line]:
    if found.others:
        yield ()
        yield line(Piece("Other errors in this text:", "strong"))
        for other in found.others:
            yield from (line(words) for words in quoted(other, page, first=f"{MARGIN}- ", rest=f"{MARGIN}  "))
    named = next((cause.rule for cause in found.causes if cause.rule), "")
    if named:
        yield ()
        yield line(f"seatrial explain {named} shows an example and the fix.")
    if found.cut:
        yield line(f"Only the last {TEXT_MAX:,} characters of the text were read.")
