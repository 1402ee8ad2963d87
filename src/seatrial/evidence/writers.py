"""Who wrote an object last, of those who act on purpose: a release, or somebody without one. Knows no kind."""

from __future__ import annotations

from seatrial.model.timeline import Event, Rehearsal

ON_PURPOSE = ("helm", "kubectl", "someone", "kubernetes")
"""Not what controllers do. `kubernetes` brings what was there before the first step."""
WROTE = ("created", "changed")


def wrote_before(rehearsal: Rehearsal, event: Event) -> Event | None:
    """The write on purpose that an event comes after."""
    earlier = reversed(rehearsal.timeline[: event.index])
    return next((e for e in earlier if e.object == event.object and is_written(e)), None)


def is_written(event: Event) -> bool:
    """Whether somebody wrote an object on purpose."""
    return event.effect in WROTE and event.actor in ON_PURPOSE


def writer_of(rehearsal: Rehearsal, event: Event) -> tuple[str, str, str]:
    """Whose write it is: of a release by its name and namespace, of others by what they applied."""
    if event.step < 0:
        return "", "", ""
    ended = rehearsal.steps[event.step]
    return ended.release, ended.namespace, "" if ended.release else ended.source
