"""A hook Job is deleted as soon as it finishes, so the engine does not see its result.

## What happens
With `ttlSecondsAfterFinished: 0` the cluster deletes a Job as soon as it finishes, successful or not. Argo CD up to
2.14 checks the Job only when an event triggers it; by then it is gone, and the operation stays at `waiting for
completion of hook` forever. The migration itself was done. Since 3.0 Argo CD puts a finalizer on hooks until it has
seen their result, so these versions are not affected.

Helm 4 watches the Job, which is completed and deleted within a moment. If Helm sees only the deletion, the hook is
`NotFound`, and the install fails or waits until `--timeout`
([31786](https://github.com/helm/helm/issues/31786)). Helm 3 treats a deleted hook as finished.

Whether the engine sees the Job between its completion and its deletion is a race. With Helm 4 the finding is a `may`;
with Argo CD it is what the rehearsal shows. A TTL of a few seconds makes the race unlikely, but does not remove it.

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
Omit it, and let `hook-succeeded` delete the Job after success; or set it to an hour.

## Fix safety
A longer TTL is safe: hooks are deleted before they are recreated.
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
    """Hooks that completed and whose TTL deletes them at once."""
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
        message=f"{helm_act(moment, hook.ref)} fails if hook {hook.ref} is deleted before Helm 4 has seen its result",
        details=(
            "Its ttlSecondsAfterFinished is 0: the cluster deletes it as soon as it finishes. Helm gets both events "
            "one right after the other.",
            f'Helm then fails with "{says}", at once or after --timeout.',
            "The Job did complete. Helm 3 treats a deleted hook as finished; Helm 4 does not.",
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
        message=f"{ends_in_words(one)}: {in_words(task)} waits for {task.object}, finished and deleted",
        details=(
            f'Argo CD reports: "{one.operation.message}". {NO_TIMEOUT}',
            f"Its ttlSecondsAfterFinished is {seconds}: the cluster deletes it before Argo CD has seen its result."
            if seconds is not None
            else "",
            never_run(one.operation),
            "Argo CD 3.0 and later put a finalizer on hooks and are not affected.",
        ),
        places=[job.place(*FIELD)] if job else [],
        evidence=_end_of(rehearsal, one),
        confirm=look_at_operation(one.operation),
    )


def _end_of(rehearsal: Rehearsal, one: Blocked) -> list[Event]:
    """The creation and the deletion of the Job."""
    events = [e for e in rehearsal.of_step(one.step) if e.object == one.waited[0].object]
    return [e for e in events if e.effect in GOING or (e.actor == ARGOCD and e.effect == "created")]


RULE = Rule("ST815", "hook-job-ttl-zero-lost-result", check)
