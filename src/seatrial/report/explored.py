"""Which orders between a slow and a fast cluster were tried."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from seatrial.model.result import Explored
from seatrial.report.page import Line, Page, Piece, line, sentences
from seatrial.report.wording import counted

HEADING = "Explored between a slow and a fast cluster:"


def explored_section(found: Sequence[Explored], page: Page) -> Iterator[Line]:
    if not found:
        return
    yield line(Piece(HEADING, "strong"))
    for one in found:
        pairs, left = counted(one.open_pairs, "pair"), one.open_pairs - one.tried_pairs
        of = f"{counted(one.rehearsals, 'schedule')} of {counted(one.objects, 'object')} with controllers"
        text = f"{one.engine}: {of}; {pairs} can run in either order: {one.tried_pairs} tried both ways, {left} left"
        yield from (line(words) for words in sentences(text, page, first="  ", rest="    "))
    yield ()
