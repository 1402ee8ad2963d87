"""A hook Job deletes itself the moment it has finished, and the engine waits for a result that is gone.

## What happens
With `ttlSecondsAfterFinished: 0` the cluster deletes a Job as soon as it has ended, well or not. Argo CD up to 2.14
looks at the Job when something reminds it to; by then it is gone, and the operation stays at `waiting for completion
of hook`, for ever. The migration itself was done. Since 3.0 Argo CD puts a finalizer on hooks, which keeps them until
it has seen how they ended; for these versions there is no hazard.

Helm 4 watches the Job, is told that it has ended and at once that it is gone. If the second overtakes the first, the
hook is `NotFound` to it, and the install fails or waits until `--timeout`
([31786](https://github.com/helm/helm/issues/31786)). Helm 3 took a hook that is deleted for one that has ended.

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
Leave it out, and let `hook-succeeded` delete the Job when all has ended well; or give it an hour.

## Fix safety
A longer time to live is safe: hooks are deleted before they are made anew.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.argocd.blocked import NO_TIMEOUT, Blocked, blocked, ends_in_words, never_run
from seatrial.evidence.argocd.syncs import ARGOCD, in_words, look_at_operation
from seatrial.evidence.history import GOING
from seatrial.evidence.hooks.runs import acted_on, event_of, helm_act
from seatrial.evidence.moment import Moment, found, moments
from seatrial.helm import hooks
from seatrial.helm.hooks import ERROR_PREFIX
from seatrial.kinds.core import conditions
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case, Resource
from seatrial.model.resource import Ref, dig
from seatrial.model.timeline import Event, Rehearsal

FIELD = ("spec", "ttlSecondsAfterFinished")


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    for one in blocked(rehearsal, case, "gone"):
        yield _finding(rehearsal, case, one)
    if (rehearsal.engine.name, rehearsal.engine.major) == ("helm", "4"):
        yield from _watched_by_helm(rehearsal, case)


def _watched_by_helm(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    """Hooks that ended well, and went or were about to go by themselves."""
    seen: set[Ref] = set()
    for moment in moments(rehearsal, case):
        release = acted_on(case, moment.index)
        for hook in release.resources if release else ():
            if dig(hook.body, *FIELD) != 0 or hook.ref in seen or not hooks.runs_at(hook.body, moment.ended.action):
                continue
            events = [e for e in moment.events() if e.object == hook.ref]
            done = [e for e in events if e.after is not None and conditions.is_true(e.after, "Complete")]
            if done:
                seen.add(hook.ref)
                yield _overtaken(moment, hook, done[0])


def _overtaken(moment: Moment, hook: Resource, done: Event) -> Finding:
    event = event_of(moment, hook)
    says = f"{ERROR_PREFIX.get(event, '')}resource {hook.ref} not ready. status: NotFound, message: Resource not found"
    return found(
        RULE,
        moment,
        objects=[hook.ref],
        damage="failed-deploy",
        certainty="may",
        message=f"{helm_act(moment, hook.ref)} fails if the {event} hook {hook.ref} is gone before Helm 4 has "
        "seen how it ended",
        details=(
            "Its ttlSecondsAfterFinished is 0: the cluster deletes it as soon as it has ended. Helm is told both, one "
            "right after the other.",
            f'Helm then says: "{says}", at once or when --timeout is over.',
            "What the Job had to do was done. Helm 3 takes a hook that is deleted for one that has ended.",
        ),
        places=[hook.place(*FIELD)],
        evidence=[done],
        confirm="helm version --short  # v4",
    )


def _finding(rehearsal: Rehearsal, case: Case, one: Blocked) -> Finding:
    task = one.waited[0]
    job = case.written(one.step, task.object)
    seconds = dig(job.body, *FIELD) if job else None
    return found(
        RULE,
        Moment(rehearsal, case, one.step),
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
