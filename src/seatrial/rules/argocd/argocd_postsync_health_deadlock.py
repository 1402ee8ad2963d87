"""A workload needs a PostSync hook to become healthy, and the hook runs only when the workload is healthy.

## What happens
`PostSync` starts when everything in the `Sync` phase is healthy, and Helm's `post-install` and `post-upgrade` hooks are
`PostSync`. `helm install` runs them as soon as the objects are created, unless it runs with `--wait`; Argo CD always
waits. A workload whose pods mount what such a hook creates, or wait in an init container for its Job, never becomes
ready. With a Deployment the sync fails after `progressDeadlineSeconds`; with other kinds the operation stays `Running`
without a timeout. On a cluster where the hook has already run, the problem does not appear.

If an init container only names the Job of such a hook, the finding is a `may`: whether it waits depends on its program.

## Example
```yaml
apiVersion: batch/v1
kind: Job
metadata:
  name: app-migrate
  annotations:
    helm.sh/hook: post-install,post-upgrade
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: app
spec:
  template:
    spec:
      initContainers:
        - name: wait
          command: [kubectl, wait, --for=condition=complete, job/app-migrate]
```

## Instead
Make the Job a `Sync` hook (`argocd.argoproj.io/hook: Sync`) in a wave before the workload; or do its work in an init
container of the workload.

## Fix safety
The Job then runs before the new pods: it must not need them.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.argocd.blocked import (
    NO_TIMEOUT,
    Blocked,
    blocked,
    ends_in_words,
    evidence_of,
    never_run,
    order_of,
    says_of_it,
)
from seatrial.evidence.argocd.syncs import done_by_argocd, look_at_operation, operations
from seatrial.evidence.hooks.waiters import awaited_jobs
from seatrial.evidence.moment import Moment, found
from seatrial.helm import argocd_hooks
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case, Resource
from seatrial.model.resource import Ref, dig
from seatrial.model.timeline import Operation, Rehearsal
from seatrial.phrases.hooks import how, says
from seatrial.phrases.objects import in_kubectl


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    for one in blocked(rehearsal, case, "post-sync"):
        yield _deadlock(rehearsal, case, one)
    seen: set[tuple[Ref, Ref]] = set()
    for step, operation in operations(rehearsal):
        release = case.releases[step]
        for workload in release.resources if release else ():
            for finding in _of_init_containers(Moment(rehearsal, case, step), operation, workload):
                if finding.objects[:2] not in seen:
                    seen.add((finding.objects[0], finding.objects[1]))
                    yield finding


def _deadlock(rehearsal: Rehearsal, case: Case, one: Blocked) -> Finding:
    moment = Moment(rehearsal, case, one.step)
    first = one.brought[0]
    ref, hook = first.need.object, case.written(one.step, first.task.object)
    made = f"produced from {first.task.object}, " if first.is_made else ""
    return found(
        RULE,
        moment,
        objects=[first.user.ref, ref],
        damage="failed-deploy",
        message=f"{ends_in_words(one)}: {first.user.ref} {how(first.need)} {ref}, {made}a PostSync hook",
        details=(
            f"Argo CD runs PostSync hooks only when {first.user.ref.name} is healthy.",
            says(moment, ref),
            says_of_it(one),
            never_run(one.operation),
            "helm install without --wait runs the same hook at once, so it works there.",
        ),
        places=[*([order_of(hook)] if hook else []), first.user.place(*first.need.field)],
        evidence=evidence_of(rehearsal, one),
        confirm=look_at_operation(one.operation),
    )


def _of_init_containers(moment: Moment, operation: Operation, workload: Resource) -> Iterator[Finding]:
    """An init container that names a Job of PostSync."""
    spec = dig(workload.body, "spec", "template", "spec")
    applied = any(e.effect == "created" for e in done_by_argocd(moment, workload.ref))
    if not isinstance(spec, dict) or not applied or argocd_hooks.is_hook(workload.body):
        return
    after = {task.object: task for task in operation.tasks if task.phase == "PostSync"}
    for name, at in awaited_jobs(spec, workload.ref.namespace):
        ref = Ref("Job", workload.ref.namespace, name, "batch")
        job = moment.case.written(moment.index, ref)
        if job is not None and ref in after and argocd_hooks.phases_of(job.body) == ("PostSync",):
            yield found(
                RULE,
                moment,
                objects=[workload.ref, ref],
                damage="failed-deploy",
                certainty="may",
                message=f"the sync of {operation.app} never ends if {workload.ref} waits for PostSync hook {ref}",
                details=(
                    f"Argo CD runs PostSync hooks only when {workload.ref.name} is healthy.",
                    "An init container names that Job. Whether it waits for it depends on its program, which seatrial "
                    "does not run.",
                    NO_TIMEOUT,
                ),
                places=[order_of(job), workload.place(*at)],
                confirm=f"kubectl get {in_kubectl(ref)}  # while the sync runs: it does not exist",
            )


RULE = Rule("ST806", "argocd-postsync-health-deadlock", check)
