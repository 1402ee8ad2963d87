"""The timeline of one rehearsal, as `seatrial run` prints it: each step, its events, and how it ended.

By default it shows writes of engines, objects that controllers create and delete, refusals, messages and waits.
Status updates of controllers, reads and no-op requests are counted, and shown on a verbose page.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from seatrial.model.timeline import Event, Rehearsal, StepResult
from seatrial.report.events import Columns, columns_of, event_lines
from seatrial.report.page import Line, Page, Piece, line, printed, quoted, sentences
from seatrial.report.steps import ended
from seatrial.report.wording import counted

INDENT = "   "
NO_EFFECT = ("read", "unchanged")


class EventLayout(Struct, frozen=True):
    """How the events of a rehearsal are laid out."""

    depths: dict[int, int]
    columns: Columns


def render(rehearsal: Rehearsal, page: Page) -> str:
    return printed(_report(rehearsal, page), page)


def render_events(events: Sequence[Event], page: Page) -> str:
    """Events as they happen, for `seatrial serve -v`."""
    shown = [event for event in events if is_notable(event)]
    table = _table(events, shown, page, indent="")
    return printed(event_lines(shown, page, indent="", depths=table.depths, columns=table.columns), page)


def is_notable(event: Event) -> bool:
    """Whether an event is shown when the page is not verbose."""
    kept_up_to_date = event.effect == "changed" and event.cause is not None
    return event.effect not in NO_EFFECT and not kept_up_to_date


def _report(rehearsal: Rehearsal, page: Page) -> Iterator[Line]:
    yield line(Piece(str(rehearsal.engine), "strong"), Piece(f", {rehearsal.schedule} schedule", "faint"))
    yield ()
    shown = [event for event in rehearsal.timeline if page.verbose or (event.step >= 0 and is_notable(event))]
    table = _table(rehearsal.timeline, shown, page, indent=INDENT)
    before = [event for event in rehearsal.timeline if event.step < 0]
    if before and page.verbose:
        yield line(Piece("before the first step", "strong"))
        yield from _events(before, table, page)
        yield ()
    for index, step in enumerate(rehearsal.steps):
        yield from _step(index, step, list(rehearsal.of_step(index)), table, page)
        yield ()
    yield from _summary(rehearsal, page)


def _step(index: int, step: StepResult, events: Sequence[Event], table: EventLayout, page: Page) -> Iterator[Line]:
    source = f" {step.deploys}" if step.deploys else ""
    release = f" {'as' if step.deploys else 'of'} {step.release}" if step.release else ""
    yield line(Piece(f"{index + 1}  {step.action}{source}", "strong"), Piece(f"{release} in {step.namespace}", "faint"))
    if not page.quiet:
        yield from _events(events, table, page)
    yield line(INDENT, *ended(step))
    for text in filter(None, (step.error, *step.warnings)):
        yield from (line(Piece(words, "bad")) for words in quoted(text, page, first=INDENT, rest=INDENT))
    for word, refs in (("missing", step.missing), ("left behind", step.orphans)):
        yield from (line(INDENT, Piece(f"{word}: {ref}", "bad")) for ref in refs)


def _events(events: Sequence[Event], table: EventLayout, page: Page) -> Iterator[Line]:
    shown = [event for event in events if page.verbose or is_notable(event)]
    yield from event_lines(shown, page, indent=INDENT, depths=table.depths, columns=table.columns)
    if len(shown) < len(events):
        left_out = counted(len(events) - len(shown), "read, update or no-op", "reads, updates and no-ops")
        yield line(INDENT, Piece(f"{left_out} not shown (-v shows all)", "faint"))


def _table(events: Sequence[Event], shown: Sequence[Event], page: Page, *, indent: str) -> EventLayout:
    """One layout for all steps. An event is indented under its causes of the same step that are shown."""
    seen = {event.index for event in shown}
    steps = {event.index: event.step for event in events}
    depths: dict[int, int] = {}
    for event in events:
        because = event.cause if event.cause is not None and steps.get(event.cause) == event.step else None
        depths[event.index] = 0 if because is None else depths[because] + (because in seen)
    return EventLayout(depths, columns_of(shown, page, indent=indent, depths=depths))


def _summary(rehearsal: Rehearsal, page: Page) -> Iterator[Line]:
    if rehearsal.not_modelled:
        text = f"Not modelled (stored, but no controller acts on them): {', '.join(rehearsal.not_modelled)}"
        yield from (line(words) for words in sentences(text, page, first="", rest="  "))
    steps = f"{counted(len(rehearsal.steps), 'step')} · {counted(len(rehearsal.timeline), 'event')}"
    yield line(Piece(steps, "strong"))
