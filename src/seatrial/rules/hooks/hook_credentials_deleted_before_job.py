"""Helm deletes what a hook Job runs with while the Job is still running.

## What happens
When a hook fails or does not complete in time, Helm (3.19 and later, and 4) deletes the earlier hooks that have
succeeded and have `hook-succeeded`. A ServiceAccount, Role or Secret has succeeded as soon as it exists. The Job itself
stays unless it has `hook-failed`. A Job that is only slow thus loses its ServiceAccount: requests of its running pod
get `Unauthorized`, and its next pod is not created (`error looking up service account`). It can never complete.

This does not happen with Argo CD: it deletes hooks when the whole operation has ended, and keeps what is running.

## Example
```yaml
kind: ServiceAccount
metadata:
  annotations:
    helm.sh/hook: pre-delete
    helm.sh/hook-weight: "-5"
    helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded,hook-failed
---
kind: Job
metadata:
  annotations:
    helm.sh/hook: pre-delete
    helm.sh/hook-delete-policy: before-hook-creation        # stays, and needs the ServiceAccount
```

## Instead
Use the same delete policies on all of them; or only `before-hook-creation` on what the Job runs with.

## Fix safety
A ServiceAccount that stays behind keeps its permissions: grant only what it needs.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.flux.reconciliations import failed_release, flux_says, goes_on
from seatrial.evidence.history import GOING
from seatrial.evidence.hooks.runs import acted_on, done_by_helm, event_of
from seatrial.evidence.moment import Moment, found, moments
from seatrial.graph import needs_of
from seatrial.helm import hooks
from seatrial.kinds.access.rbac import GROUP as RBAC
from seatrial.kinds.workloads.job import is_done
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case, Release, Resource
from seatrial.model.resource import Ref, listed
from seatrial.model.timeline import Event, Rehearsal
from seatrial.phrases.hooks import ends
from seatrial.phrases.objects import in_kubectl
from seatrial.phrases.outcome import named

BINDINGS = ("RoleBinding", "ClusterRoleBinding")


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    reported: set[Ref] = set()
    for moment in moments(rehearsal, case):
        release = acted_on(case, moment.index)
        for job in release.resources if release and moment.ended.outcome != "ok" else ():
            runs = job.ref not in reported and _still_runs(moment, job)
            lost = list(_lost(moment, release, job)) if release and runs else []
            if lost:
                reported.add(job.ref)
                yield _finding(moment, job, lost)


def _still_runs(moment: Moment, job: Resource) -> bool:
    """Whether Helm left a hook Job behind that is not done."""
    if job.ref.kind != "Job" or not event_of(moment, job):
        return False
    body = moment.live(job.ref)
    return body is not None and not is_done(body)


def _lost(moment: Moment, release: Release, job: Resource) -> Iterator[tuple[Resource, Event]]:
    """What the Job runs with and Helm deleted after it created the Job, with the deletion.

    With the same policies Helm deletes it too, but only because the step failed for another reason.
    """
    created = [e.index for e in done_by_helm(moment, job.ref) if e.effect == "created"]
    used = _used(release, job)
    for event in done_by_helm(moment) if created else ():
        resource = release.find(event.object)
        if event.effect not in GOING or event.index <= created[-1] or resource is None or resource.ref not in used:
            continue
        if not set(hooks.delete_policies(resource.body)) <= set(hooks.delete_policies(job.body)):
            yield resource, event


def _used(release: Release, job: Resource) -> set[Ref]:
    """What a Job uses, and the bindings of its ServiceAccount with their roles."""
    used = {need.object for need in needs_of(job) if not need.guess}
    accounts = {ref.name for ref in used if ref.kind == "ServiceAccount"}
    for binding in release.resources:
        subjects = (
            {str(s.get("name")) for s in listed(binding.body, "subjects")} if binding.ref.kind in BINDINGS else ()
        )
        if accounts.intersection(subjects):
            role = binding.body.get("roleRef") or {}
            where = binding.ref.namespace if role.get("kind") == "Role" else ""
            used |= {binding.ref, Ref(str(role.get("kind")), where, str(role.get("name")), RBAC)}
    return used


def _finding(moment: Moment, job: Resource, lost: list[tuple[Resource, Event]]) -> Finding:
    refs = [resource.ref for resource, _ in lost]
    return found(
        RULE,
        moment,
        objects=[job.ref, *refs],
        damage="failed-deploy",
        message=f"{ends(moment, job.ref)}: {refs[0]} is deleted while its {job.ref.kind} runs",
        details=(
            f"Helm deletes {named(refs)} while {job.ref} runs.",
            f"The delete policies differ: {_policies(lost[0][0])} on {refs[0]}, {_policies(job)} on the Job.",
            "Requests of its running pod now fail with Unauthorized, and no new pod can be created.",
            f"{flux_says(own)}. {goes_on(own)}" if (own := failed_release(moment.ended, job.ref)) else "",
        ),
        places=[lost[0][0].place("metadata", "annotations", hooks.DELETE_POLICY), job.place("metadata", "annotations")],
        evidence=[event for _, event in lost],
        confirm=f"kubectl describe {in_kubectl(job.ref)}  # after Helm has given up",
    )


def _policies(resource: Resource) -> str:
    return ", ".join(hooks.delete_policies(resource.body))


RULE = Rule("ST226", "hook-credentials-deleted-before-job", check)
