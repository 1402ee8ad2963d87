"""Events of a timeline, one line each: who did what to which object, and what came of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from seatrial.report.page import Line, Page, Piece, Role, line, lines_of, quoted
from seatrial.timeline import Effect, Event

ACTOR_MAX = 24
OBJECT_MAX = 60
"""Columns are as wide as their widest text, up to here; longer texts push the rest of their own line."""

SAID: Effect = "said"
ROLES: dict[Effect, Role] = {
    "created": "good",
    "deleting": "bad",
    "deleted": "bad",
    "refused": "bad",
    SAID: "doubt",
    "waiting": "doubt",
    "read": "faint",
    "unchanged": "faint",
}


def event_lines(
    events: Sequence[Event], page: Page, *, indent: str = "", depths: Mapping[int, int] | None = None
) -> Iterator[Line]:
    """The events as a table; `depths` indents those that were caused by one above, by index."""
    depths = depths or {}
    actors = {event.index: "  " * depths.get(event.index, 0) + event.actor for event in events}
    index_width = max((len(str(event.index)) for event in events), default=0)
    actor_width = min(ACTOR_MAX, max(map(len, actors.values()), default=0))
    verb_width = max((len(_verb(event)) for event in events), default=0)
    object_width = min(OBJECT_MAX, max((len(str(event.object)) for event in events), default=0))
    for event in events:
        start = f"{indent}{event.index:>{index_width}}  "
        who = f"{actors[event.index]:<{actor_width}}  {_verb(event):<{verb_width}}  "
        yield from _told(event, Piece(start, "faint"), who, object_width, page)


def _verb(event: Event) -> str:
    return "says" if event.effect == SAID else event.verb


def _told(event: Event, start: Piece, who: str, object_width: int, page: Page) -> Iterator[Line]:
    role = ROLES.get(event.effect, "")
    before = (start, Piece(who), Piece(f"{event.object!s:<{object_width}}"))
    outcome = "" if event.effect == SAID else event.effect
    if not event.message:
        yield line(*before, "  ", Piece(outcome, role))
        return
    # What was said stands beside its object where there is room for it, and else below: it is never cut.
    words = lines_of(event.message)
    beside = f"{outcome}: {words[0]}" if outcome else words[0]
    length = sum(len(piece.text) for piece in before) + 2
    if len(words) == 1 and length + len(beside) <= (page.fold or page.width):
        yield line(*before, "  ", Piece(beside, role))
        return
    yield line(*before, "  ", Piece(outcome, role))
    margin = " " * (len(start.text) + len(who))
    yield from (line(Piece(text, role)) for text in quoted(event.message, page, first=margin, rest=margin))
