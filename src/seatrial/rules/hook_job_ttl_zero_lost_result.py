"""A hook Job deletes itself the moment it has finished, and the engine waits for a result that is gone.

## What happens
With `ttlSecondsAfterFinished: 0` the cluster deletes a Job as soon as it has ended, well or not. Argo CD up to 2.14
looks at the Job when something reminds it to; by then it is gone, and the operation stays at `waiting for completion
of hook`, for ever. The migration itself was done. Since 3.0 Argo CD puts a finalizer on hooks, which keeps them until
it has seen how they ended; for these versions there is no hazard.

It **may** go well: whether the Job is looked at in the moment between its end and its deletion is a race. A time to
live of some seconds is the same race, seldom lost.

## Example
```yaml
apiVersion: batch/v1
kind: Job
metadata:
  name: migrate
  annotations:
    helm.sh/hook: post-install,post-upgrade
spec:
  ttlSecondsAfterFinished: 0
```

## Instead
Leave it out, and let `hook-succeeded` delete the Job when the sync has ended well; or give it an hour.

## Fix safety
A longer time to live is safe: hooks are deleted before they are made anew.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.case import Case
from seatrial.findings import Finding, Rule, found
from seatrial.resource import dig
from seatrial.rules.blocked import NO_TIMEOUT, Blocked, blocked, ends_in_words, never_run
from seatrial.rules.deeds import GOING
from seatrial.rules.syncs import ARGOCD, in_words, look_at_operation
from seatrial.timeline import Event, Rehearsal

FIELD = ("spec", "ttlSecondsAfterFinished")


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    for one in blocked(rehearsal, case, "gone"):
        yield _finding(rehearsal, case, one)


def _finding(rehearsal: Rehearsal, case: Case, one: Blocked) -> Finding:
    task = one.waited[0]
    job = case.written(one.step, task.object)
    seconds = dig(job.body, *FIELD) if job else None
    return found(
        RULE,
        rehearsal,
        one.step,
        objects=[task.object],
        damage="failed-deploy",
        certainty="may",
        message=f"{ends_in_words(one)}: {in_words(task)} waits for {task.object}, which has finished and is gone",
        details=(
            f'Argo CD says: "{one.operation.message}". {NO_TIMEOUT}',
            f"Its ttlSecondsAfterFinished is {seconds}: the cluster deletes it before Argo CD has seen how it ended."
            if seconds is not None
            else "",
            never_run(one.operation),
            "Argo CD 3.0 and later put a finalizer on hooks, and see it.",
        ),
        places=[job.place(*FIELD)] if job else [],
        evidence=_end_of(rehearsal, one),
        confirm=look_at_operation(one.operation),
    )


def _end_of(rehearsal: Rehearsal, one: Blocked) -> list[Event]:
    """How the Job was made, and how it went."""
    events = [e for e in rehearsal.of_step(one.step) if e.object == one.waited[0].object]
    return [e for e in events if e.effect in GOING or (e.actor == ARGOCD and e.effect == "created")]


RULE = Rule("ST815", "hook-job-ttl-zero-lost-result", check)
