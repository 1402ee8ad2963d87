"""The timeline of one rehearsal: each step, what happened in it, and how it ended. What `seatrial run` prints.

By default it tells what was written, refused, said and waited for. Reads, requests that changed nothing and the
statuses that controllers keep are counted, and shown when the page is verbose.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from seatrial.report.events import event_lines
from seatrial.report.page import Line, Page, Piece, line, printed, quoted, sentences
from seatrial.report.steps import ended
from seatrial.report.wording import counted
from seatrial.timeline import Event, Rehearsal, StepResult

NOISE_VERBS = ("status",)
NOISE_EFFECTS = ("read", "unchanged")


def render(rehearsal: Rehearsal, page: Page) -> str:
    return printed(_report(rehearsal, page), page)


def render_events(events: Sequence[Event], page: Page) -> str:
    """Events as they come, for someone who watches."""
    shown = [event for event in events if is_telling(event)]
    return printed(event_lines(shown, page, depths=_depths(events, {event.index for event in shown})), page)


def is_telling(event: Event) -> bool:
    """Whether an event is worth a line where not everything is shown."""
    return event.effect not in NOISE_EFFECTS and event.verb not in NOISE_VERBS


def _report(rehearsal: Rehearsal, page: Page) -> Iterator[Line]:
    yield line(Piece(rehearsal.engine, "strong"), Piece(f", {rehearsal.schedule} schedule", "faint"))
    yield ()
    before = [event for event in rehearsal.timeline if event.step < 0]
    if before and page.verbose:
        yield line(Piece("before the first step", "strong"))
        yield from _events(before, page)
        yield ()
    for index, step in enumerate(rehearsal.steps):
        yield from _step(index, step, list(rehearsal.of_step(index)), page)
        yield ()
    yield from _last_words(rehearsal, page)


def _step(index: int, step: StepResult, events: Sequence[Event], page: Page) -> Iterator[Line]:
    source = f" {step.source}" if step.source else ""
    release = f" {'as' if step.source else 'of'} {step.release}" if step.release else ""
    yield line(Piece(f"{index + 1}  {step.action}{source}", "strong"), Piece(f"{release} in {step.namespace}", "faint"))
    if not page.quiet:
        yield from _events(events, page)
    yield line("   ", *ended(step))
    for text in filter(None, (step.error, *step.warnings)):
        yield from (line(Piece(words, "bad")) for words in quoted(text, page, first="   ", rest="   "))
    for word, refs in (("missing", step.missing), ("orphan", step.orphans)):
        yield from (line("   ", Piece(f"{word}: {ref}", "bad")) for ref in refs)


def _events(events: Sequence[Event], page: Page) -> Iterator[Line]:
    shown = [event for event in events if page.verbose or is_telling(event)]
    yield from event_lines(shown, page, indent="   ", depths=_depths(events, {event.index for event in shown}))
    if len(shown) < len(events):
        left_out = counted(len(events) - len(shown), "read, status or no-op", "reads, statuses and no-ops")
        yield line("   ", Piece(f"{left_out} not shown (-v shows all)", "faint"))


def _depths(events: Sequence[Event], shown: set[int]) -> dict[int, int]:
    """How many shown events of the same step led to each one."""
    depths: dict[int, int] = {}
    for event in events:
        if event.cause in depths:
            depths[event.index] = depths[event.cause] + (event.cause in shown)
        else:
            depths[event.index] = 0
    return depths


def _last_words(rehearsal: Rehearsal, page: Page) -> Iterator[Line]:
    if rehearsal.not_modelled:
        text = f"Not modelled (stored as they are; nothing acts on them): {', '.join(rehearsal.not_modelled)}"
        yield from (line(words) for words in sentences(text, page, first="", rest="  "))
    steps = f"{counted(len(rehearsal.steps), 'step')} · {counted(len(rehearsal.timeline), 'event')}"
    yield line(Piece(steps, "strong"))
