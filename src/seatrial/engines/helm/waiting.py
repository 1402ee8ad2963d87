"""For which objects Helm waits, by what it has written so far. Does not know when it stops waiting."""

from __future__ import annotations

from collections.abc import Iterable

from seatrial.helm import hooks, records
from seatrial.model.resource import Ref
from seatrial.model.timeline import Event

REMOVING = ("install", "uninstall")
"""Actions that wait until what they delete is gone. An install deletes where --rollback-on-failure undoes it."""


def waited_for(action: str, events: Iterable[Event]) -> list[Ref]:
    """The hook that Helm wrote last, or else all regular resources that it wrote: `statuswait.go` of Helm 4."""
    written = [event for event in events if not _is_record(event)]
    while written and _is_hook(written[-1]) and written[-1].effect == "deleted":
        written.pop()  # Nothing is left to wait for.
    if not written:
        return []
    if _is_hook(written[-1]):
        return [written[-1].object]
    last = {event.object: event.verb == "delete" for event in written if not _is_hook(event)}
    deletes = action in REMOVING and written[-1].verb == "delete"
    return [ref for ref, deleted in last.items() if deleted == deletes]


def _is_hook(event: Event) -> bool:
    return hooks.is_hook(event.after or event.before or {})


def _is_record(event: Event) -> bool:
    return (event.after or event.before or {}).get("type") == records.TYPE
