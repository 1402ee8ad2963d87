"""An Argo CD sync waits for something that cannot come: the operation stays Running for ever.

## What happens
Argo CD applies one wave at a time, and begins the next when everything of the last one is healthy. There is no timeout.
Where an object can only become healthy through something of a later wave - a claim whose first consumer comes later, a
Job whose ServiceAccount comes later, a load balancer that nobody makes - the operation waits, and all waves behind it
are never applied. It looks like a slow start: the Application shows `Progressing`, and its operation `Running`.

The last wave is not waited for. The same object there does no harm, which is why such waves are found in the first
sync of a new cluster and not when they are written.

## Example
```yaml
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: models
  annotations:
    argocd.argoproj.io/sync-wave: "-6"     # the storage class binds with the first consumer
---
apiVersion: batch/v1
kind: Job
metadata:
  name: init-models                        # uses the claim
  annotations:
    argocd.argoproj.io/sync-wave: "-5"
```

## Instead
Put what is waited for into the wave of what it needs: objects of one wave are all applied before anybody looks at
them. A health check that calls everything healthy also ends the wait, and hides the next real failure.

## Fix safety
Another wave changes nothing for what is already there.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial import argocdhooks
from seatrial.case import Case, Release
from seatrial.findings import Finding, Rule, found
from seatrial.graph import needs_of
from seatrial.resource import Ref
from seatrial.timeline import Operation, Rehearsal, SyncTask

NAMES_MAX = 4


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    told: set[tuple[str, tuple[Ref, ...]]] = set()
    for step, ended in enumerate(rehearsal.steps):
        for operation in ended.operations:
            key = operation.app, operation.waits_for
            if operation.phase == "Running" and operation.waits_for and key not in told:
                told.add(key)
                yield _blocked(rehearsal, case, step, operation)


def _blocked(rehearsal: Rehearsal, case: Case, step: int, operation: Operation) -> Finding:
    first = next(task for task in operation.tasks if task.object in operation.waits_for)
    resources = [case.written(step, ref) for ref in operation.waits_for]
    release, ended = case.releases[step], rehearsal.steps[step]
    return found(
        RULE,
        rehearsal,
        step,
        objects=operation.waits_for,
        damage="failed-deploy",
        message=f"the sync of {operation.app} never ends: {first.phase} wave {first.wave} stays at "
        f'"{operation.message}"',
        details=(
            *_later(operation, ended.lacking, release),
            _never_run(operation),
            "Argo CD has no timeout for a wave; retries begin only when an operation has failed.",
        ),
        places=[r.place("metadata", "annotations", argocdhooks.WAVE) for r in resources if r is not None],
        evidence=[
            event
            for event in rehearsal.of_step(step)
            if event.object in operation.waits_for and event.effect in ("created", "said")
        ],
        confirm=f"kubectl get application {operation.app} -n argocd -o jsonpath='{{.status.operationState.message}}'",
    )


def _later(operation: Operation, lacking: tuple[Ref, ...], release: Release | None) -> Iterator[str]:
    """What of the waves that never run would end the wait."""
    pending = {task.object: task for task in operation.tasks if not task.status}
    for ref in lacking:
        if ref in pending:
            yield f"It lacks {ref}, which comes in {_place(pending[ref])}."
    for waited in operation.waits_for:
        users = [task for task in pending.values() if release and _uses(release, task.object, waited)]
        named = ", ".join(f"{task.object} in {_place(task)}" for task in users[:NAMES_MAX])
        if named:
            yield f"{waited} is used by {named}."


def _uses(release: Release, user: Ref, used: Ref) -> bool:
    resource = release.find(user)
    return resource is not None and any(need.object == used for need in needs_of(resource))


def _place(task: SyncTask) -> str:
    return f"{task.phase} wave {task.wave}"


def _never_run(operation: Operation) -> str:
    places = [f"{phase} wave {wave}" for phase, wave in operation.never_ran()]
    count = sum(not task.status and task.phase != "SyncFail" for task in operation.tasks)
    return f"Never run: {', '.join(places)} ({count} object{'s' if count > 1 else ''})." if places else ""


RULE = Rule("ST801", "argocd-sync-blocked", check)
