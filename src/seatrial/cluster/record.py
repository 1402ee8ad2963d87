"""Records the events of a run: who did what to which object, and why. Reads none."""

from __future__ import annotations

from itertools import groupby

from msgspec.structs import replace

from seatrial.kinds import Emit
from seatrial.model.refusal import Failure, Refusal, renumbered
from seatrial.model.resource import Body, Ref
from seatrial.model.timeline import Effect, Event, NotFollowed

BEFORE_THE_TRIAL = -1
CLOCK = "clock"
"""Actor name for events caused by a passed deadline."""
NOTES = ("patch", "update", "status")
"""Requests by which controllers keep notes in their own objects."""
MESSAGE = "Event"
"""The kind of what controllers of an engine tell users, which hides with their objects."""


class Recorder:
    """Collects events during a rehearsal."""

    def __init__(self) -> None:
        self.step = BEFORE_THE_TRIAL
        self._events: list[Event] = []
        self._forgotten = 0
        """How many events came before these."""
        self._unordered: set[tuple[int, str, str]] = set()
        self._fences: set[int] = set()
        self._given_up: dict[int, int] = {}
        self._refused_reads: list[tuple[int, Refusal]] = []
        self._accepted: list[Event] = []
        self.hidden: set[Ref] = set()
        """Objects of an engine itself, such as its settings: what happens to them is no part of the rehearsal."""
        self.noted_in: set[str] = set()
        """API groups, or `Kind.group`, of an engine that keeps notes in its objects: changes beside their `spec`."""

    def begin(self, step: int, actor: str = "", unordered: tuple[str, ...] = ()) -> None:
        """Start a step. `unordered` are verbs that `actor` sends at once for all objects of a kind."""
        self.step = step
        self._unordered.update((step, actor, verb) for verb in unordered)

    def give_up(self) -> None:
        """The client is being cancelled. From here on drop its no-op writes.

        A cancelled Helm rolls back and, racily, repeats its last write.
        """
        self._given_up.setdefault(self.step, self.count)

    def fence(self) -> None:
        """The following events belong to no request: controllers run by themselves."""
        self._fences.add(self.count)

    def note(
        self,
        actor: str,
        verb: str,
        ref: Ref,
        effect: Effect,
        message: str = "",
        cause: int | None = None,
        before: Body | None = None,
        after: Body | None = None,
        unanswered: tuple[str, ...] = (),
    ) -> int:
        event = Event(self.count, self.step, actor, verb, ref, effect, message, cause, before, after)
        return self._add(replace(event, unanswered=unanswered) if unanswered else event)

    def refused(self, actor: str, verb: str, ref: Ref, refusal: Refusal, cause: int | None = None) -> int:
        """Record a refused request."""
        event = Event(self.count, self.step, actor, verb, ref, "refused", refusal.message, cause)
        return self._add(replace(event, refusal=refusal, missing=refusal.missing))

    def controller_said(self, actor: str, ref: Ref, said: Emit, cause: int | None) -> int:
        """Record a message of a controller or kubelet about an object."""
        event = Event(self.count, self.step, actor, "say", ref, "said", said.message, cause, after=said.body)
        missing = said.refusal.missing if said.refusal else said.missing
        known = {"refusal": said.refusal, "missing": missing, "key": said.key, "held_by": said.held_by}
        return self._add(replace(event, **known, reason=said.reason, not_followed=said.not_followed))

    def mark_made_up(self, start: int, actor: str, note: NotFollowed | None) -> None:
        """The writes of a script since the event `start` have a made-up value, if there is a note of it."""
        for place in range(start - self._forgotten, len(self._events) if note else 0):
            if self._events[place].actor == actor:
                self._events[place] = replace(self._events[place], not_followed=note)

    def engine_said(self, actor: str, ref: Ref, words: str, effect: Effect, failure: Failure) -> int:
        """Record a message of an engine about an object, or that it waits for one."""
        verb = "wait" if effect == "waiting" else "say"
        missing = tuple(fault.object for fault in failure.faults if fault.of == "not-found" and fault.object)
        event = Event(self.count, self.step, actor, verb, ref, effect, words, failure=failure, missing=missing)
        return self._add(event)

    def read_refused(self, refusal: Refusal) -> None:
        """Remember the refusal of a read. Reads are not in the timeline."""
        self._refused_reads.append((self.count, refusal))

    def created_since(self, start: int, actor: str) -> dict[Ref, Body]:
        """What an actor has created since the event `start`, in order."""
        events = (event for event in self._since(start) if event.actor == actor and event.effect == "created")
        return {event.object: event.after for event in events if event.after is not None}

    def written_since(self, start: int, actor: str) -> list[Event]:
        """The accepted writes of an actor since the event `start`, in order."""
        events = [*(event for event in self._accepted if event.index >= start), *self._since(start)]
        own = (event for event in events if event.actor == actor and event.cause is None)
        written = (event for event in own if event.after is not None or event.before is not None)
        return sorted(written, key=lambda event: event.index)

    def accepted(self, actor: str, verb: str, ref: Ref, body: Body) -> None:
        """Remember a write that is answered as if it were accepted, and that is not in the timeline."""
        self._accepted.append(Event(self.count, self.step, actor, verb, ref, "unchanged", after=body))

    def refused_since(self, start: int, actor: str) -> tuple[tuple[Event, ...], tuple[Refusal, ...]]:
        """The writes of an actor and the reads that were refused since an event."""
        writes = (event for event in self._since(start) if event.effect == "refused" and event.actor == actor)
        return tuple(writes), tuple(refusal for index, refusal in self._refused_reads if index >= start)

    def _since(self, start: int) -> list[Event]:
        return [event for event in self._events[max(0, start - self._forgotten) :] if not self._is_hidden(event)]

    def _add(self, event: Event) -> int:
        self._events.append(event)
        return event.index

    @property
    def count(self) -> int:
        """How many events there were so far."""
        return self._forgotten + len(self._events)

    def forget(self, most: int) -> bool:
        """Keep only the last events, for a cluster that is there for long. Returns whether any were forgotten."""
        if len(self._events) + len(self._refused_reads) <= 2 * most:
            return False
        self._forgotten += max(0, len(self._events) - most)
        del self._events[:-most]
        self._refused_reads = [found for found in self._refused_reads if found[0] >= self._forgotten][-most:]
        self._fences = {index for index in self._fences if index >= self._forgotten}
        return True

    def said(self) -> list[Event]:
        """The messages of controllers and kubelets so far, in order."""
        return [event for event in self._events if event.effect == "said" and event.actor != CLOCK]

    def timeline(self) -> tuple[Event, ...]:
        """The events so far. Concurrent requests are sorted by name, so that the same run gives the same timeline."""
        events = self._ordered()
        place = {event.index: index for index, event in enumerate(events)}
        return tuple(
            replace(
                event,
                index=index,
                cause=None if event.cause is None else place.get(event.cause),
                failure=renumbered(event.failure, place.__getitem__),
            )
            for index, event in enumerate(events)
        )

    def places(self) -> dict[int, int]:
        """The position of each event in the timeline, by the index it was recorded with."""
        return {event.index: index for index, event in enumerate(self._ordered())}

    def _ordered(self) -> list[Event]:
        blocks = self._blocks()
        events = [
            event for _, run in groupby(blocks, self._batch) for block in self._sorted(list(run)) for event in block
        ]
        return [event for event in events if not self._is_idle(event) and not self._is_hidden(event)]

    def _is_hidden(self, event: Event) -> bool:
        ref = event.object
        if self.hidden and (ref in self.hidden or ref.kind == MESSAGE):
            return True
        if event.verb not in NOTES or self.noted_in.isdisjoint((ref.group, f"{ref.kind}.{ref.group}")):
            return False
        same = (event.before or {}).get("spec") == (event.after or {}).get("spec")
        return event.effect == "refused" or (event.effect in ("changed", "unchanged") and same)

    def _is_idle(self, event: Event) -> bool:
        stopped = self._given_up.get(event.step)
        return stopped is not None and event.index >= stopped and event.effect == "unchanged"

    def _blocks(self) -> list[list[Event]]:
        """Each request with the controller events before the next request."""
        blocks: list[list[Event]] = []
        for event in self._events:
            if event.cause is None or event.index in self._fences or not blocks:
                blocks.append([])
            blocks[-1].append(event)
        return blocks

    def _batch(self, block: list[Event]) -> object:
        first = block[0]
        if first.cause is None and (first.step, first.actor, first.verb) in self._unordered:
            return first.step, first.actor, first.verb, first.object.kind, first.object.group
        return first.index

    def _sorted(self, blocks: list[list[Event]]) -> list[list[Event]]:
        return blocks if len(blocks) == 1 else sorted(blocks, key=lambda block: block[0].object)
