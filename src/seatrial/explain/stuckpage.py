"""The page of `explain --live`: the chain to the object at the root, and what its words mean. Decides nothing."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from seatrial.explain.diagnosis import Diagnosis, diagnose
from seatrial.live.causes import WaitCause
from seatrial.report.page import Line, Page, Piece, line, printed, quoted, sentences

CAUSES_MAX = 2
MARGIN = "  "


class StuckTopic(Struct, frozen=True, tag="stuck", tag_field="topic"):
    """A target of a live cluster, and why it does not go on."""

    stuck: WaitCause
    diagnosis: Diagnosis | None = None
    """What the words nearest to the root mean, if they are known."""


def topic(stuck: WaitCause) -> StuckTopic:
    found = (diagnose(link.says) for link in reversed(stuck.links))
    return StuckTopic(stuck, next((one for one in found if one is not None), None))


def render(found: StuckTopic, page: Page) -> str:
    return printed(_lines(found, page), page)


def _lines(found: StuckTopic, page: Page) -> Iterator[Line]:
    stuck = found.stuck
    if not stuck.links:
        yield line(Piece(stuck.target, "strong"), ": nothing is stuck; its objects are usable.")
        return
    yield line(Piece(stuck.target, "strong"), ": what you see first, what is at the root last")
    for depth, link in enumerate(stuck.links):
        last = depth == len(stuck.links) - 1
        yield line(MARGIN * (depth + 1), Piece(str(link.object or stuck.target), "bad" if last else "strong"))
        margin = MARGIN * (depth + 2)
        yield from (line(words) for words in sentences(link.says, page, first=margin, rest=margin))
    yield from _meaning(found.diagnosis, page)
    yield ()
    yield line(Piece("Next:", "strong"))
    yield from (line(Piece(words, "place")) for words in quoted(stuck.command, page, first="  $ ", rest="      "))
    yield from _also(stuck, page)


def _meaning(diagnosis: Diagnosis | None, page: Page) -> Iterator[Line]:
    if diagnosis is None:
        return
    yield ()
    yield line(Piece("Likely cause:", "strong"))
    for cause in diagnosis.causes[:CAUSES_MAX]:
        name = f"{cause.rule} ({cause.code}): " if cause.rule else ""
        yield from (line(words) for words in sentences(f"{name}{cause.about}", page, first="  - ", rest="    "))
    if rule := next((cause.rule for cause in diagnosis.causes[:CAUSES_MAX] if cause.rule), ""):
        yield line(f"seatrial explain {rule} shows an example and the fix.")


def _also(stuck: WaitCause, page: Page) -> Iterator[Line]:
    if stuck.also:
        yield ()
        yield line(Piece("Also not usable, for another reason:", "strong"))
        for link in stuck.also:
            yield from (line(one) for one in sentences(f"{link.object}: {link.says}", page, first="  - ", rest="    "))
    for note in stuck.notes:
        yield from (line(one) for one in sentences(note, page, first="note: ", rest="      "))
