"""A claim that waits for its first consumer is in an earlier wave than that consumer, and the sync waits for the claim.

## What happens
Most storage classes bind a claim when the first pod that uses it is scheduled (`WaitForFirstConsumer`). Until then it
is `Pending`, and that is `Progressing` for Argo CD, whatever the class says: not degraded, so nothing fails, and not
healthy, so the next wave does not begin. If the pod is in that next wave, each waits for the other, without a timeout.

Within one wave everything is applied before anybody looks at its health. So it is enough that the claim and its first
consumer share a wave. The same trap: a plain claim that only a PostSync hook uses, and a claim that is a PreSync hook.

A claim that nothing in the Application uses is never bound either. In the last wave nobody waits for it.

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
  name: init-models                        # uses the claim
  annotations:
    argocd.argoproj.io/sync-wave: "-5"
```

## Instead
Put the claim into the wave of its first consumer. A health check of your own that calls a pending claim healthy ends
the wait as well; it also hides claims that cannot be bound because of a wrong class or a quota, and unless it looks
whether there is a `status` at all, it fails on a claim that has just been made.

## Fix safety
Another wave changes nothing for a claim that is there.
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
    unused = "and nothing that is still to come uses it"
    tasks = (*one.waited, *one.consumers[:1])
    resources = [case.written(one.step, task.object) for task in tasks]
    return found(
        RULE,
        Moment(rehearsal, case, one.step),
        objects=[task.object for task in one.waited],
        damage="failed-deploy",
        message=f"the sync of {operation.app} never ends: {in_words(first)} waits until {first.object} is bound, "
        + (f"and its first consumer, {user.object}, comes in {in_words(user)}" if user else unused),
        details=(
            f'Argo CD says: "{operation.message}". A pending claim is Progressing for it, not Degraded: nothing fails, '
            "and nothing goes on.",
            never_run(operation),
            NO_TIMEOUT,
            "Its storage class binds claims when the first pod is scheduled; a class that binds at once would not show "
            "this.",
        ),
        places=[order_of(r) for r in resources if r is not None],
        evidence=evidence_of(rehearsal, one),
        confirm=look_at_operation(operation),
    )


RULE = Rule("ST804", "pvc-wffc-wave-deadlock", check)
