"""A hook for installs only, or for upgrades only, runs in every sync of Argo CD.

## What happens
Argo CD always renders as for an install, and has no upgrades. `pre-install` and `pre-upgrade` are both `PreSync`,
`post-install` and `post-upgrade` both `PostSync`, in every sync: the first one, each new commit, and a sync without
changes. A Job that sets something up once is deleted and runs again; a Job that migrates from the previous version runs
when there is no previous version.

Such Jobs must be idempotent. `kubectl create` is not: `secrets "x" already exists`. If the rehearsal saw it fail, it
**will** happen; otherwise it **may**: the rest depends on the Job's program. An install hook whose script has only
commands that can be repeated (`kubectl apply`, `get ... || create ...`) is not reported.

## Example
```yaml
apiVersion: batch/v1
kind: Job
metadata:
  name: create-admin
  annotations:
    helm.sh/hook: post-install
```

## Instead
Make the Job idempotent (`kubectl create ... --dry-run=client -o yaml | kubectl apply -f -`). For work that must run
once, use a Job that is a regular resource: Argo CD applies it in every sync, which does nothing as long as its template
stays the same.

## Fix safety
The template of a Job that is a regular resource cannot change; one with `ttlSecondsAfterFinished` is recreated after
its deletion.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.argocd.syncs import done_by_argocd, operations
from seatrial.evidence.argocd.unmeant import creates_again, is_unmeant
from seatrial.evidence.hooks.repeatable import can_run_again
from seatrial.evidence.moment import Moment, found
from seatrial.helm import hooks
from seatrial.kinds.scripts.commands import needed
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case, Resource
from seatrial.model.resource import Ref, dig
from seatrial.model.timeline import Event, Rehearsal, SyncTask
from seatrial.phrases.objects import in_kubectl


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    synced: set[str] = set()
    reported: set[Ref] = set()
    for step, operation in operations(rehearsal):
        moment = Moment(rehearsal, case, step)
        for task in operation.tasks:
            resource = case.written(step, task.object)
            if resource is None or task.object in reported or not is_unmeant(resource, again=operation.app in synced):
                continue
            made = [e for e in done_by_argocd(moment, task.object) if e.effect == "created"]
            if made and not (operation.app in synced and can_run_again(resource, case, step)):
                reported.add(task.object)
                yield _finding(moment, task, resource, made[0], again=operation.app in synced)
        synced.add(operation.app)


def _finding(moment: Moment, task: SyncTask, resource: Resource, made: Event, *, again: bool) -> Finding:
    ref, events = resource.ref, ", ".join(hooks.events_of(resource.body))
    when = "every sync runs it again" if again else "the first sync runs it"
    creates = next(_creates(resource), "") if again else ""
    refused = [event for event in moment.events() if creates_again(event, ref)] if creates else []
    second = "Whether it can run a second time depends on its program."
    first = "Whether it works without a previous install depends on its program."
    return found(
        RULE,
        moment,
        objects=[ref],
        damage="failed-deploy" if creates else "nuisance",
        certainty="will" if refused else "may",
        message=f"{ref} is a hook for {'installs' if again else 'upgrades'} only ({events}), and {when}",
        details=(
            f"For Argo CD it is a {task.phase} hook: every render is for an install, and every sync runs it.",
            f'Its command "{creates}" is refused: {refused[0].message}.'
            if refused
            else f'Its command "{creates}" fails with "already exists" if the object that it created still exists.'
            if creates
            else second
            if again
            else first,
        ),
        places=[resource.place("metadata", "annotations", hooks.HOOK)],
        evidence=[made, *refused[:1]],
        confirm=f"kubectl get {in_kubectl(ref)} -o jsonpath='{{.metadata.creationTimestamp}}'  # after each sync",
    )


def _creates(hook: Resource) -> Iterator[str]:
    """Commands that create an object and fail if it exists."""
    spec = hook.body.get("spec") if hook.ref.kind == "Pod" else dig(hook.body, "spec", "template", "spec")
    for need in needed(spec, hook.ref.namespace) if isinstance(spec, dict) else ():
        if need.access.verb == "create" and need.fatal:
            yield need.command


RULE = Rule("ST812", "argocd-install-only-hook-runs-every-sync", check)
