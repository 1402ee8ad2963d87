"""A PVC with `WaitForFirstConsumer` is in an earlier wave than its first consumer: a deadlock.

## What happens
Most storage classes bind a PVC when the first pod that uses it is scheduled (`WaitForFirstConsumer`). Until then it is
`Pending`, which is `Progressing` for Argo CD: not degraded, so nothing fails, and not healthy, so the next wave does
not start. If the pod is in the next wave, each waits for the other, without a timeout.

Within one wave Argo CD applies everything before it checks health. So it is enough that the PVC and its first consumer
share a wave. The same happens to a PVC that only a PostSync hook uses, and to a PVC that is a PreSync hook.

A PVC that nothing in the Application uses is never bound either. In the last wave Argo CD does not wait for it.

## Example
```yaml
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: models
  annotations:
    argocd.argoproj.io/sync-wave: "-6"
---
apiVersion: batch/v1
kind: Job
metadata:
  name: init-models                        # uses the PVC
  annotations:
    argocd.argoproj.io/sync-wave: "-5"
```

## Instead
Put the PVC into the wave of its first consumer. A custom health check that reports a pending PVC as healthy also ends
the wait; but it hides PVCs that cannot be bound because of a wrong class or a quota, and it must handle a new PVC that
has no `status` yet.

## Fix safety
Changing the wave does not affect an existing PVC.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.argocd.blocked import (
    NO_TIMEOUT,
    Blocked,
    blocked,
    evidence_of,
    never_run,
    order_of,
)
from seatrial.evidence.argocd.syncs import in_words, look_at_operation
from seatrial.evidence.moment import Moment, found
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case
from seatrial.model.timeline import Rehearsal


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    for one in blocked(rehearsal, case, "claim"):
        yield _finding(rehearsal, case, one)


def _finding(rehearsal: Rehearsal, case: Case, one: Blocked) -> Finding:
    first, operation = one.waited[0], one.operation
    user = next(iter(one.consumers), None)
    tasks = (*one.waited, *one.consumers[:1])
    resources = [case.written(one.step, task.object) for task in tasks]
    return found(
        RULE,
        Moment(rehearsal, case, one.step),
        objects=[task.object for task in one.waited],
        damage="failed-deploy",
        message=f"the sync of {operation.app} never ends in {in_words(first)}: {first.object} is never bound",
        details=(
            f"Its first consumer, {user.object}, is in {in_words(user)}."
            if user
            else "Nothing in a later wave uses it.",
            f'Argo CD reports: "{operation.message}". A pending PVC is Progressing, not Degraded: nothing fails and '
            "nothing continues.",
            never_run(operation),
            NO_TIMEOUT,
            "Its storage class binds a PVC when the first pod is scheduled; with a class that binds immediately this "
            "does not happen.",
        ),
        places=[order_of(r) for r in resources if r is not None],
        evidence=evidence_of(rehearsal, one),
        confirm=look_at_operation(operation),
    )


RULE = Rule("ST804", "pvc-wffc-wave-deadlock", check)
