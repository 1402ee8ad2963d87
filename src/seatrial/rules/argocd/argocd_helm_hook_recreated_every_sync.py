"""A long-lived object is a hook, so Argo CD deletes and recreates it in every sync.

## What happens
Argo CD reads `helm.sh/hook` itself: `pre-install` and `pre-upgrade` are `PreSync`, `post-install` and `post-upgrade`
are `PostSync`. It does not distinguish installs from upgrades, so such hooks run in **every** sync. Unless a delete
policy says otherwise, the existing object is deleted first: `before-hook-creation` is the default of Argo CD as well as
of Helm. For a Job that is intended. A Namespace is deleted with all its content, a PVC with its data, a ServiceAccount
with the tokens of running pods; a Secret or ConfigMap is missing for a moment, and pods that start then fail.

Hooks are not compared with the cluster. If a user deletes or changes the object, the Application stays `Synced` and
self-heal does not recreate it; if a sync stops between the deletion and the creation, it stays deleted. Removed from
Git, it is not pruned either.

## Example
```yaml
apiVersion: v1
kind: ConfigMap
metadata:
  name: app-config          # mounted by a Deployment
  annotations:
    helm.sh/hook: pre-install,pre-upgrade
```

## Instead
Make it a regular resource. Argo CD applies Namespaces, ServiceAccounts, Secrets and ConfigMaps before workloads in each
wave; `argocd.argoproj.io/sync-wave` moves it earlier still. If a PreSync Job also needs it, give the Job its own copy.

## Fix safety
Removing the annotations is safe under Argo CD: the next sync applies the object without deleting it; that change alone
does not start an automated sync. Helm refuses it for installed releases (`hook-to-release-flip`).
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.argocd.syncs import done_by_argocd, operations
from seatrial.evidence.history import GOING, cascade
from seatrial.evidence.moment import Moment, found
from seatrial.graph import Edge
from seatrial.helm import argocd_hooks, hooks
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case, Resource
from seatrial.model.resource import Pointer, Ref, annotations_of
from seatrial.model.timeline import Event, Rehearsal, SyncTask
from seatrial.phrases.objects import confirm_twice, consumers_sentence, users_beyond_hooks
from seatrial.phrases.recreated import (
    LOST_MAX,
    EndsWithObject,
    back_sentence,
    damage_of,
    ended_with,
    lost_sentence,
    with_it,
)

MEANT = ("Job", "Pod", "CustomResourceDefinition")
"""Kinds that are meant to run again, and the one that Argo CD does not track as its own."""


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    seen: set[Ref] = set()
    for step, operation in operations(rehearsal):
        moment = Moment(rehearsal, case, step)
        for task in operation.tasks:
            deletion = _deletion_of_live(moment, task)
            resource = case.written(step, task.object)
            if deletion is None or resource is None or task.object in seen:
                continue
            lost, users = cascade(rehearsal, deletion), _users(case, step, task.object)
            used = bool(lost or users) or task.object.kind == "PersistentVolumeClaim"
            ended = None if used else ended_with(moment, task.object, deletion)
            if used or ended:
                seen.add(task.object)
                yield _finding(moment, task, resource, deletion, lost, ended)


def _deletion_of_live(moment: Moment, task: SyncTask) -> Event | None:
    """The deletion of a hook that an earlier sync left; not of a former regular resource."""
    if not task.hook or task.object.kind in MEANT:
        return None
    before = moment.was(task.object)
    if before is None or not argocd_hooks.is_hook(before):
        return None
    return next((e for e in done_by_argocd(moment, task.object) if e.effect in GOING), None)


def _users(case: Case, step: int, ref: Ref) -> list[Edge]:
    release = case.releases[step]
    edges = users_beyond_hooks(release, ref) if release else []
    return [edge for edge in edges if not argocd_hooks.is_hook(edge.user.body)]


def _finding(
    moment: Moment, task: SyncTask, resource: Resource, deletion: Event, lost: list[Event], ended: EndsWithObject | None
) -> Finding:
    ref, release = resource.ref, moment.release
    what = f"{ref}{with_it(lost)}{ended.words if ended else ''}"
    return found(
        RULE,
        moment,
        objects=[ref],
        certainty=ended.certainty if ended else "will",
        damage=ended.damage if ended else damage_of(moment, ref, lost),
        message=f"every sync deletes and recreates {what}, because it is a hook",
        details=(
            _reading_sentence(task, resource),
            lost_sentence(moment, [event.object for event in lost]),
            ended.sentence if ended else "",
            consumers_sentence(release, ref) if release else "",
            back_sentence(moment, ref),
            "Hooks are not compared: if it is deleted or changed, the Application stays Synced and self-heal does not "
            "recreate it.",
        ),
        places=[_place(resource)],
        evidence=(deletion, *lost[:LOST_MAX], *(ended.events[:LOST_MAX] if ended else ())),
        confirm=confirm_twice(ref, "{.metadata.uid}", "a sync"),
    )


def _reading_sentence(task: SyncTask, resource: Resource) -> str:
    """Why Argo CD treats it as a hook that it deletes first."""
    written = annotations_of(resource.body)
    policy = any(key in written for key in (hooks.DELETE_POLICY, argocd_hooks.DELETE_POLICY))
    named = "Its delete policy is" if policy else "It has no delete policy, and the default is"
    reading = f"Argo CD runs it in {task.phase}, in every sync"
    if argocd_hooks.HOOK not in written:
        reading = f"helm.sh/hook: {written.get(hooks.HOOK)} is {task.phase} for Argo CD, in every sync"
    return f"{reading}: it does not distinguish installs from upgrades. {named} before-hook-creation."


def _place(resource: Resource) -> Pointer:
    written = annotations_of(resource.body)
    key = argocd_hooks.HOOK if argocd_hooks.HOOK in written else hooks.HOOK
    return resource.place("metadata", "annotations", key)


RULE = Rule("ST802", "argocd-helm-hook-recreated-every-sync", check)
