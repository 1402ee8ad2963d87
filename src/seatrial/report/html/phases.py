"""The phase in which an engine did something: a hook of Helm with its weight, a phase of Argo CD with its wave."""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.helm import hooks
from seatrial.helm.records import NAME as RECORD
from seatrial.model.resource import Body, Ref
from seatrial.model.timeline import Event, Rehearsal, StepResult, SyncTask

WRITES = ("created", "changed", "unchanged", "deleting", "deleted", "refused", "waiting")


def phases_of(rehearsal: Rehearsal) -> dict[int, str]:
    """The phase of each event of the engine that has one, by the index of the event."""
    found: dict[int, str] = {}
    for number, step in enumerate(rehearsal.steps):
        events = [event for event in rehearsal.of_step(number) if event.actor in rehearsal.actors]
        found.update(_argocd(events, step) if step.operations else _helm(events, step))
    return found


def _helm(events: list[Event], step: StepResult) -> Iterator[tuple[int, str]]:
    """Hooks of the action of this step: before the regular resources, then after them."""
    before, after = (*hooks.EVENTS_OF.get(step.action, ()), "", "")[:2]
    regular = False
    for event, body in _with_bodies(events):
        runs = [name for name in hooks.events_of(body) if name in (before, after)]
        now = after if after in runs and (regular or before not in runs) else before if runs and not regular else ""
        if now:
            yield event.index, f"{now} hook, weight {hooks.weight_of(body)}"
        regular = regular or not runs


def _with_bodies(events: list[Event]) -> Iterator[tuple[Event, Body]]:
    """Writes of the engine, each with the object as it is then; a deletion before a hook belongs to that hook."""
    created: dict[Ref, Body] = {}
    found: list[tuple[Event, Body]] = []
    for event in reversed(events):
        if event.effect not in WRITES or RECORD.fullmatch(event.object.name):
            continue
        body = event.after or created.pop(event.object, None) or event.before
        if event.effect == "created" and event.after:
            created[event.object] = event.after
        if body:
            found.append((event, body))
    return reversed(found)


def unreached(step: StepResult) -> Iterator[tuple[Ref, str]]:
    """The objects that the syncs of a step did not get to, with their phases; not those for a failed sync."""
    for operation in step.operations:
        places = operation.never_ran()
        yield from ((task.object, _place(task)) for task in operation.tasks if not task.status and task.place in places)


def _argocd(events: list[Event], step: StepResult) -> Iterator[tuple[int, str]]:
    tasks: dict[Ref, SyncTask] = {}
    for operation in step.operations:
        for task in operation.tasks:
            tasks.setdefault(task.object, task)
    for event in events:
        if event.effect in WRITES and (found := tasks.get(event.object)):
            yield event.index, _place(found)


def _place(task: SyncTask) -> str:
    return f"{'prune' if task.prune else task.phase}, wave {task.wave}"
