"""Events of a timeline, one line each: actor, verb, object, effect."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from seatrial.evidence.history import GOING
from seatrial.model.timeline import Effect, Event
from seatrial.report.page import Line, Page, Piece, Role, line, quoted

OBJECT_MAX = 60
"""Maximum width of the object column; longer names push the rest of their own line."""
BESIDE_MAX = 160
"""Maximum length of a line with its message, on a page that does not fold."""
DEPTH_MAX = 3
"""A rollout is a chain of thirty causes; more than three levels of indent do not help."""

SAID: Effect = "said"
NOT_FOUND = "NotFound"
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


class Columns(Struct, frozen=True):
    """Column widths of a table of events."""

    index: int
    actor: int
    verb: int
    object: int
    fits: bool
    """Whether the page is wide enough for a table; if not, each event is a folded sentence."""


def columns_of(events: Sequence[Event], page: Page, *, indent: str, depths: Mapping[int, int]) -> Columns:
    """The widths that these events need."""
    index = max((len(str(event.index)) for event in events), default=0)
    actor = max((len(_actor(event, depths)) for event in events), default=0)
    verb = max((len(_verb(event)) for event in events), default=0)
    named = min(OBJECT_MAX, max((len(str(event.object)) for event in events), default=0))
    effect = max((len(_effect(event)) for event in events), default=0)
    whole = len(indent) + index + actor + verb + named + effect + 8
    return Columns(index, actor, verb, named, fits=not page.fold or whole <= page.fold)


def event_lines(
    events: Sequence[Event], page: Page, *, indent: str, depths: Mapping[int, int], columns: Columns
) -> Iterator[Line]:
    """The events as a table; `depths` is the number of causes before each event, by index."""
    previous = ""
    for event in events:
        # A cascade is one reason for many deletions; only the first of them shows it.
        message = "" if (event.effect in GOING and event.message == previous) or is_absent(event) else event.message
        previous = event.message
        start = f"{indent}{event.index:>{columns.index}}  "
        if columns.fits:
            yield from _row(event, message, start, columns, depths, page)
        else:
            yield from _sentence(event, message, start, depths, page)


def _actor(event: Event, depths: Mapping[int, int]) -> str:
    return "  " * min(DEPTH_MAX, depths.get(event.index, 0)) + event.actor


def _verb(event: Event) -> str:
    return "reports" if event.effect == SAID else event.verb


def is_absent(event: Event) -> bool:
    """Whether an object was to be deleted that does not exist: nothing is refused."""
    return event.verb == "delete" and event.refusal is not None and event.refusal.reason == NOT_FOUND


def _effect(event: Event) -> str:
    return "" if event.effect == SAID else "not found" if is_absent(event) else event.effect


def _role(event: Event) -> Role:
    return "faint" if is_absent(event) else ROLES.get(event.effect, "")


def _row(
    event: Event, message: str, start: str, columns: Columns, depths: Mapping[int, int], page: Page
) -> Iterator[Line]:
    who = f"{_actor(event, depths):<{columns.actor}}  {_verb(event):<{columns.verb}}  "
    named = f"{event.object!s:<{columns.object}}  "
    role = _role(event)
    beside = ": ".join(filter(None, (_effect(event), message)))
    # The message is on the same line if it fits, otherwise below. It is never cut.
    if "\n" not in message and len(start + who + named + beside) <= (page.fold or BESIDE_MAX):
        yield line(Piece(start, "faint"), who, named, Piece(beside, role))
        return
    yield line(Piece(start, "faint"), who, named, Piece(_effect(event), role))
    margin = " " * len(start + who)
    yield from (line(Piece(text, role)) for text in quoted(message, page, first=margin, rest=margin))


def _sentence(event: Event, message: str, start: str, depths: Mapping[int, int], page: Page) -> Iterator[Line]:
    who = f"{_actor(event, depths)} {_verb(event)} {event.object}: "
    effect = ": ".join(filter(None, (_effect(event), message)))
    role = _role(event)
    first, *more = quoted(f"{who}{effect}", page, first=start, rest=" " * (len(start) + 4))
    split = len(start + who)
    yield line(Piece(start, "faint"), first[len(start) : split], Piece(first[split:], role))
    yield from (line(Piece(text, role)) for text in more)
