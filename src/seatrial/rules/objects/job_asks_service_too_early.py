"""A Job calls a Service of the same deployment before a pod behind it is ready, and is not retried often enough.

## What happens
A Job and the database that it needs are applied in one step. Nothing waits between them: the pods of both start at the
same time, and a database takes longer to start than the client that calls it. If the Job calls it only once and its
`backoffLimit` leaves no time, the Job fails for good. On a fast cluster, and at every later deployment, the database is
ready in time.

Most engines report success. Argo CD and Flux report the failed Job only where they wait for its health, and a failed
Job is not run again when the same manifest is applied: it must be deleted by hand.

With the default `backoffLimit` of 6 a Job is retried for some minutes, which is enough for most databases. An init
container that waits is better: it does not count as a failure.

## Example
```yaml
kind: Job
spec:
  backoffLimit: 0
  template:
    spec:
      restartPolicy: Never
      containers:
        - command: [psql, -h, db, -f, schema.sql]   # db is in the same folder
```

## Instead
Wait in an init container: `until nc -z db 5432; do sleep 2; done`. Or deploy the database first, and wait for it: a
lower sync wave, a Kustomization with `wait: true` in `dependsOn`, `kubectl rollout status`.

## Fix safety
A wait without a limit hides a database that never starts: set `activeDeadlineSeconds`.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.history import owner_of
from seatrial.evidence.hooks.services import asked_by, backends
from seatrial.evidence.moment import Moment, found, moments
from seatrial.helm import argocd_hooks, hooks
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case, Release, Resource
from seatrial.model.resource import Ref, dig, listed
from seatrial.model.timeline import Event, Rehearsal
from seatrial.phrases.objects import in_kubectl

BACKOFF_LIMIT = 6
"""The default of Kubernetes."""


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    seen: set[Ref] = set()
    for moment in moments(rehearsal, case):
        release = moment.release
        for event in moment.events() if release else ():
            called = next((ref for ref in event.missing if ref.kind == "Service"), None)
            if release is None or called is None or event.object.kind != "Pod" or event.effect != "said":
                continue
            job, service = _failed_job(moment, release, event), release.find(called)
            if job is not None and service is not None and job.ref not in seen and not _waits(moment, release, service):
                seen.add(job.ref)
                yield _finding(moment, release, job, service, event)


def _failed_job(moment: Moment, release: Release, event: Event) -> Resource | None:
    """The Job of a pod, if it failed in this step and is no hook: other rules are about those."""
    owner = owner_of(moment, event.object, event.after)
    job = release.find(owner) if owner is not None else None
    if job is None or job.ref.kind != "Job" or hooks.is_hook(job.body) or argocd_hooks.is_hook(job.body):
        return None
    return job if _has_failed(moment, job.ref) else None


def _waits(moment: Moment, release: Release, service: Resource) -> bool:
    """Whether the pods behind a Service lack something themselves: what they lack is the cause."""
    behind = {one.ref for one in backends(service, release)}
    lacking = (event for event in moment.events() if event.object.kind == "Pod" and event.missing)
    return any(owner_of(moment, event.object, event.after) in behind for event in lacking)


def _has_failed(moment: Moment, job: Ref) -> bool:
    conditions = listed(moment.live(job) or {}, "status", "conditions")
    return any((one.get("type"), one.get("status")) == ("Failed", "True") for one in conditions)


def _finding(moment: Moment, release: Release, job: Resource, called: Resource, event: Event) -> Finding:
    service = called.ref
    asked = [one for one in asked_by(job, release) if one.service.ref == service]
    field = asked[0].field if asked else ("spec", "template", "spec", "containers")
    command = next((one.command for one in asked if one.command), "")
    limit = dig(job.body, "spec", "backoffLimit")
    retries = BACKOFF_LIMIT if limit is None else int(limit)
    return found(
        RULE,
        moment,
        objects=[job.ref, service],
        damage="failed-deploy",
        message=f"{job.ref} of {moment.act} fails if {service} has no ready pod when it runs",
        details=(
            f'It runs "{command}".' if command else "",
            f"{job.ref} and the pods behind {service} start at the same time, and {moment.speaker} waits for neither. "
            f"backoffLimit is {retries}.",
            f'{event.object} reports: "{event.message}".' if event.message else "",
            f"{moment.speaker} reports success." if moment.ended.outcome == "ok" else "",
            "The same manifest does not run a failed Job again: it must be deleted first.",
        ),
        places=[job.place(*field), called.place("metadata", "name")],
        evidence=[event],
        confirm=f"kubectl get {in_kubectl(job.ref)}  # Failed",
    )


RULE = Rule("ST119", "job-asks-service-too-early", check)
