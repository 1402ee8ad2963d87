"""Helm deletes what a hook Job runs with while that Job is left to go on.

## What happens
When a hook fails or is not done in time, Helm deletes the hooks before it that have succeeded and say `hook-succeeded`
(Helm 3.19 and later, and Helm 4), and an account, a Role or a Secret has succeeded as soon as it is there. The Job
itself stays unless it says `hook-failed`. One that is only slow thus loses its account half way: its running pod gets
`Unauthorized` for each request, its next one is not made, for `error looking up service account`. It can never finish.

With Argo CD this does not happen any more: it deletes hooks when the whole operation has ended, and keeps what runs.

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
    helm.sh/hook-delete-policy: before-hook-creation        # stays, and needs the account
```

## Instead
The same policies on all of them; or only `before-hook-creation` on what the Job runs with.

## Fix safety
An account that stays behind keeps its rights: give it no more than it needs.
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

BINDINGS = ("RoleBinding", "ClusterRoleBinding")


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    told: set[Ref] = set()
    for moment in moments(rehearsal, case):
        release = acted_on(case, moment.index)
        for job in release.resources if release and moment.ended.outcome != "ok" else ():
            goes_on = job.ref not in told and _goes_on(moment, job)
            lost = list(_lost(moment, release, job)) if release and goes_on else []
            if lost:
                told.add(job.ref)
                yield _finding(moment, job, lost)


def _goes_on(moment: Moment, job: Resource) -> bool:
    """Whether Helm left a hook Job behind that has not ended."""
    if job.ref.kind != "Job" or not event_of(moment, job):
        return False
    body = moment.live(job.ref)
    return body is not None and not is_done(body)


def _lost(moment: Moment, release: Release, job: Resource) -> Iterator[tuple[Resource, Event]]:
    """What the Job runs with, and how Helm deleted it after it had made the Job."""
    made = [e.index for e in done_by_helm(moment, job.ref) if e.effect == "created"]
    used = _used(release, job)
    for event in done_by_helm(moment) if made else ():
        resource = release.find(event.object)
        if event.effect in GOING and event.index > made[-1] and resource is not None and resource.ref in used:
            yield resource, event


def _used(release: Release, job: Resource) -> set[Ref]:
    """What a Job names, and the bindings of its account with their roles."""
    named = {need.object for need in needs_of(job) if not need.guess}
    accounts = {ref.name for ref in named if ref.kind == "ServiceAccount"}
    for binding in release.resources:
        subjects = (
            {str(s.get("name")) for s in listed(binding.body, "subjects")} if binding.ref.kind in BINDINGS else ()
        )
        if accounts.intersection(subjects):
            role = binding.body.get("roleRef") or {}
            where = binding.ref.namespace if role.get("kind") == "Role" else ""
            named |= {binding.ref, Ref(str(role.get("kind")), where, str(role.get("name")), RBAC)}
    return named


def _finding(moment: Moment, job: Resource, lost: list[tuple[Resource, Event]]) -> Finding:
    names = ", ".join(str(resource.ref) for resource, _ in lost)
    return found(
        RULE,
        moment,
        objects=[job.ref, *(resource.ref for resource, _ in lost)],
        damage="failed-deploy",
        message=f"{ends(moment, job.ref)}, and Helm deletes {names} when it gives up, while {job.ref} goes on without",
        details=(
            f"The policies differ: {_policies(lost[0][0])} against {_policies(job)} on the Job, which stays.",
            "Its running pod is refused as Unauthorized from then on, and a new one is not made.",
            f"{flux_says(own)}. {goes_on(own)}" if (own := failed_release(moment.ended, job.ref)) else "",
        ),
        places=[lost[0][0].place("metadata", "annotations", hooks.DELETE_POLICY), job.place("metadata", "annotations")],
        evidence=[event for _, event in lost],
        confirm=f"kubectl describe {in_kubectl(job.ref)}  # after Helm has given up",
    )


def _policies(resource: Resource) -> str:
    return ", ".join(hooks.delete_policies(resource.body))


RULE = Rule("ST226", "hook-credentials-deleted-before-job", check)
