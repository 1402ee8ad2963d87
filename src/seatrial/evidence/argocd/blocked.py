"""Syncs that do not get past a wave, and why: what is waited for lacks something that only a later wave brings.

Five rules share this; each blocked sync is reported by one of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Literal

from msgspec import Struct

from seatrial.evidence.argocd.syncs import in_words, operations, pending
from seatrial.evidence.history import GOING
from seatrial.evidence.moment import Moment
from seatrial.evidence.producers import chain
from seatrial.graph import needs_of
from seatrial.helm import argocd_hooks, hooks
from seatrial.kinds import Need
from seatrial.model.release import Case, Resource
from seatrial.model.resource import Pointer, Ref, annotations_of
from seatrial.model.timeline import Event, Operation, Rehearsal, SyncTask

Cause = Literal["claim", "gone", "post-sync", "later", "never"]
FIRST_CONSUMER = "WaitForFirstConsumer"
NO_TIMEOUT = "Argo CD has no timeout for a wave; it retries only after an operation has failed."


class Brought(Struct, frozen=True):
    """A need of an object that the sync waits for, and the task that would create it."""

    user: Resource
    need: Need
    task: SyncTask
    """Of the object itself, of its producer, or of what the producer lacks."""
    direct: bool = True

    @property
    def is_made(self) -> bool:
        """Whether an operator produces it from the task's object."""
        return self.task.object != self.need.object


class Blocked(Struct, frozen=True):
    step: int
    operation: Operation
    cause: Cause
    waited: tuple[SyncTask, ...]
    """What it waits for, or what made it fail."""
    brought: tuple[Brought, ...] = ()
    consumers: tuple[SyncTask, ...] = ()
    """For a PVC: its possible first consumers."""


def blocked(rehearsal: Rehearsal, case: Case, *causes: Cause) -> Iterator[Blocked]:
    """The syncs that are blocked for one of these causes, each once."""
    reported: set[tuple[str, tuple[Ref, ...]]] = set()
    for step, operation in operations(rehearsal):
        found = _explained(Moment(rehearsal, case, step), operation)
        key = operation.app, tuple(task.object for task in found.waited) if found else ()
        if found is not None and key not in reported:
            reported.add(key)
            if found.cause in causes:
                yield found


def never_run(operation: Operation) -> str:
    places = [f"{phase} wave {wave}" for phase, wave in operation.never_ran()]
    count = len(pending(operation))
    return f"Never reached: {', '.join(places)} ({count} object{'s' if count > 1 else ''})." if places else ""


def ends_in_words(one: Blocked) -> str:
    """`the sync of shop never ends`"""
    return f"the sync of {one.operation.app} {'never ends' if one.operation.phase == 'Running' else 'fails'}"


def says_of_it(one: Blocked) -> str:
    """Argo CD's message, and what follows from it."""
    said = f'Argo CD reports: "{one.operation.message.rstrip(".")}".'
    return f"{said} {NO_TIMEOUT}" if one.operation.phase == "Running" else said


def evidence_of(rehearsal: Rehearsal, one: Blocked) -> list[Event]:
    refs = [task.object for task in one.waited]
    events = rehearsal.of_step(one.step)
    return [event for event in events if event.object in refs and event.effect in ("created", "said")]


def order_of(resource: Resource) -> Pointer:
    """The annotation that decides when Argo CD applies an object."""
    written = annotations_of(resource.body)
    keys = (argocd_hooks.WAVE, argocd_hooks.HOOK, hooks.HOOK, hooks.WEIGHT)
    key = next((key for key in keys if key in written), argocd_hooks.WAVE)
    return resource.place("metadata", "annotations", key)


def comes_in(one: Brought) -> str:
    """`which is in Sync wave 0`"""
    if not one.direct:
        return f"which is created only after {one.task.object} of {in_words(one.task)}"
    if one.is_made:
        return f"which is produced from {one.task.object} of {in_words(one.task)}"
    return f"which is in {in_words(one.task)}"


def _explained(moment: Moment, operation: Operation) -> Blocked | None:
    waited = _waited(operation)
    if not waited:
        return None
    if all(_is_finished_and_gone(moment, task) for task in waited):
        return Blocked(moment.index, operation, "gone", waited)
    claims = [task for task in waited if _waits_for_consumer(moment, task.object)]
    if claims and len(claims) == len(waited):
        users = [
            t for t in pending(operation) if any(_uses(moment.case, moment.index, t.object, c.object) for c in claims)
        ]
        return Blocked(moment.index, operation, "claim", tuple(claims), consumers=tuple(users))
    found = tuple(b for task in waited for b in _brought(moment, operation, task))
    if not found:
        return Blocked(moment.index, operation, "never", waited)
    users_first = {one.user.ref for one in found}
    held = tuple(task for task in waited if task.object in users_first)
    after = all(one.task.phase == "PostSync" for one in found) and held[0].phase == "Sync"
    return Blocked(moment.index, operation, "post-sync" if after else "later", held, found)


def _waited(operation: Operation) -> tuple[SyncTask, ...]:
    """What an operation waits for forever; for a failed one, the applied objects that made it fail."""
    if operation.phase == "Running":
        return tuple(task for task in operation.tasks if task.object in operation.waits_for and task.status)
    ran = (task for task in operation.tasks if task.status == "Synced" and task.state in ("Failed", "Error"))
    return tuple(task for task in ran if operation.phase == "Failed")


def _is_finished_and_gone(moment: Moment, task: SyncTask) -> bool:
    """Whether the cluster itself deleted a Job after it finished."""
    if task.object.kind != "Job" or moment.live(task.object) is not None:
        return False
    own = [event for event in moment.events() if event.object == task.object and event.effect in (*GOING, "created")]
    # What Argo CD deletes before a retry is deleted by the garbage collector in the end.
    began = [one for before, one in pairwise((None, *own)) if one and (before is None or before.effect == "created")]
    going = [event for event in began if event.effect in GOING]
    return bool(going) and going[-1].actor not in moment.rehearsal.actors


def _waits_for_consumer(moment: Moment, ref: Ref) -> bool:
    said = (e for e in moment.rehearsal.timeline if e.step <= moment.index and e.object == ref and e.effect == "said")
    return ref.kind == "PersistentVolumeClaim" and any(event.reason == FIRST_CONSUMER for event in said)


def _uses(case: Case, step: int, user: Ref, used: Ref) -> bool:
    resource = case.written(step, user)
    return resource is not None and any(need.object == used for need in needs_of(resource))


def _brought(moment: Moment, operation: Operation, task: SyncTask) -> Iterator[Brought]:
    """What a task lacks and a task that never ran would create, each once."""
    user, lacking = moment.case.written(moment.index, task.object), moment.ended.lacking
    seen: set[Ref] = set()
    for need in needs_of(user) if user else ():
        gone = need.object in lacking if operation.phase == "Running" else not need.guess
        if need.optional or not gone or need.object in seen or moment.live(need.object) is not None:
            continue
        seen.add(need.object)
        links = chain(moment, need.object)
        sources = {ref for link in links for ref in (link.missing, link.producer)}
        later = next((task for task in pending(operation) if task.object in sources), None)
        if user is not None and later is not None:
            yield Brought(user, need, later, direct=len(links) == 1)
