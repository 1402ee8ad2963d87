"""What controllers of an engine do side by side, in an order that does not depend on chance.

A request comes with all that follows from it. What may change places, and nothing else: objects of one kind in one wave
of Argo CD, deletions in one wave, and what belongs to unlike Applications or Kustomizations. A repeated deletion, and a
write that met a newer version and is sent again, count once. What an engine says of itself is no request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from msgspec import Struct

from seatrial.helm.argocd_hooks import TRACKING_ID, wave_of
from seatrial.model.resource import Body, Ref, annotations_of
from seatrial.model.timeline import Event, Rehearsal, StepResult

CONFLICT = "the object has been modified; please apply your changes to the latest version and try again"
EXISTS = "already exists"
WavePlace = tuple[str, str, int]
"""An owner, a phase and a wave."""


class EngineRequest(Struct, frozen=True):
    """A request of the engine, and the words of all that follows from it."""

    event: Event
    words: tuple[str, ...]


def works_side_by_side(rehearsal: Rehearsal) -> bool:
    """Whether an engine keeps state of its own about each thing that it deploys."""
    return any(step.operations or step.reconciled for step in rehearsal.steps)


def in_order(rehearsal: Rehearsal, step: int, words: Callable[[Event], str]) -> list[str]:
    """The words of a step; `words` are empty for an event that does not count."""
    places = _places(rehearsal, step)
    requests = list(_once(_requests(rehearsal, step, words)))
    owned = sorted(requests, key=lambda one: _owner(places.get(one.event.object, set())))
    return [text for run in _runs(owned, places) for one in sorted(run, key=_named) for text in one.words]


def _requests(rehearsal: Rehearsal, step: int, words: Callable[[Event], str]) -> Iterator[EngineRequest]:
    followed: dict[int, list[str]] = {}
    first: dict[int, Event] = {}
    for event in rehearsal.of_step(step):
        root = event
        while root.cause is not None:
            root = rehearsal.timeline[root.cause]
        if root.effect == "said" and root.actor in rehearsal.actors:
            continue
        first.setdefault(root.index, root)
        if text := words(event):
            followed.setdefault(root.index, []).append(text)
    return (EngineRequest(first[index], tuple(followed[index])) for index in sorted(followed))


def _once(requests: Iterable[EngineRequest]) -> Iterator[EngineRequest]:
    going: set[Ref] = set()
    created: set[Ref] = set()
    for one in requests:
        ref, refused = one.event.object, one.event.effect == "refused"
        if refused and (CONFLICT in one.event.message or (ref in created and one.event.message.endswith(EXISTS))):
            continue
        if one.event.verb == "delete":
            if ref in going:
                continue
            going.add(ref)
        if one.event.effect == "created":
            going.discard(ref)
            created.add(ref)
        yield one


def _places(rehearsal: Rehearsal, step: int) -> dict[Ref, set[WavePlace]]:
    """The phases and waves that objects are in; in a deletion, their waves."""
    ended = rehearsal.steps[step]
    found: dict[Ref, set[WavePlace]] = {}
    for ref, place in _named_places(ended):
        found.setdefault(ref, set()).add(place)
    for event in rehearsal.of_step(step):
        if not found.get(event.object) and event.verb == "delete" and event.before is not None:
            found[event.object] = {(_tracked_by(event.before), "", wave_of(event.before))}
        elif event.object.kind == "Namespace" and not found.get(event.object):
            found[event.object] = {(owner, "", 0) for owner in _owners_inside(event.object, found)}
    return found


def _owners_inside(namespace: Ref, places: dict[Ref, set[WavePlace]]) -> set[str]:
    """Who has objects in a namespace: Argo CD does not list one that it creates for them among its results."""
    return {place[0] for ref, known in places.items() if ref.namespace == namespace.name for place in known}


def _tracked_by(body: Body) -> str:
    """The Application that an object belongs to; those of several are deleted side by side."""
    return annotations_of(body).get(TRACKING_ID, "").partition(":")[0]


def _named_places(ended: StepResult) -> Iterator[tuple[Ref, WavePlace]]:
    for operation in ended.operations:
        yield from ((task.object, (operation.app, *task.place)) for task in operation.tasks)
    for one in ended.reconciled:
        yield from ((ref, (str(one.object), "", 0)) for ref in one.objects)


def _runs(requests: Iterable[EngineRequest], places: dict[Ref, set[WavePlace]]) -> Iterator[list[EngineRequest]]:
    """Requests that are sent at the same time."""
    run: list[EngineRequest] = []
    doing: tuple[str, str] = "", ""
    shared: set[WavePlace] = set()
    for one in requests:
        event, where = one.event, places.get(one.event.object, set())
        now = (event.verb, "") if event.verb == "delete" else ("apply", event.object.kind)
        if now != doing or not shared & where:
            if run:
                yield run
            run, shared = [], where
        doing, shared = now, shared & where
        run.append(one)
    if run:
        yield run


def _owner(places: set[WavePlace]) -> list[str]:
    return sorted({owner for owner, _, _ in places})


def _named(one: EngineRequest) -> Ref:
    return one.event.object
