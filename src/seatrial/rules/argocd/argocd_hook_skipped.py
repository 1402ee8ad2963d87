"""Only hooks changed between two commits, so automated sync does not start and the new hook never runs.

## What happens
Argo CD starts an automated sync when the Application is `OutOfSync`, and hooks are not compared. A commit that changes
only a migration Job, its image or its script leaves the Application `Synced`: the new Job runs only after the next
change of a regular resource. The same holds for an Application that contains only hooks: after its first sync nothing
starts the next.

Two other syncs skip hooks silently: a sync of selected resources (`argocd app sync --resource`, the list in the UI),
and self-heal, which is one of those. If such a sync applies a commit that changes a hook too, the new version runs
without its migration. So do not use a hook for something that must hold at all times.

A third one skips everything: a sync that a script starts by writing `operation` into the Application, without clearing
`status.operationState` as the argocd command does. The results of the last sync stay in the status. If the first wave
begins with the hook of that sync, Argo CD deletes it, then takes the old results for those of this sync: it has
succeeded, and nothing of the new commit was applied.

## Example
```yaml
apiVersion: batch/v1
kind: Job
metadata:
  name: migrate
  annotations:
    argocd.argoproj.io/hook: PreSync
spec:
  template:
    spec:
      containers:
        - image: registry.example/migrate:2      # was :1; nothing else in the commit changed
```

## Instead
Use one value for the image of the Job and that of the app, so that both change. Otherwise run a full sync by hand after
such a commit.

## Fix safety
A regular resource that changes with the hook, such as an annotation on the Deployment, starts the sync and restarts its
pods.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.argocd.blocked import order_of
from seatrial.evidence.argocd.syncs import ARGOCD, is_argocd
from seatrial.evidence.moment import Moment, found, moments
from seatrial.evidence.rotated import same_input
from seatrial.helm import argocd_hooks
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case, Release, Resource
from seatrial.model.resource import Body, Ref
from seatrial.model.timeline import Event, Rehearsal
from seatrial.phrases.objects import in_kubectl

SELECTED = "--resource"
DEEDS = ("created", "changed", "deleted", "deleting")


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    seen: set[Ref] = set()
    for moment in moments(rehearsal, case):
        old, new = moment.before, moment.release
        if not is_argocd(rehearsal) or moment.ended.action != "sync" or old is None or new is None:
            continue
        skipped = _deleted_only(moment, new)
        if skipped:
            yield _with_old_results(moment, skipped)
            continue
        if same_input(old, new):
            continue
        changed = [hook for hook in new.resources if _has_changed(old, hook)]
        applied = _applied_alone(moment, new)
        if changed and applied:
            yield _left_out(moment, changed, applied)
            continue
        if changed and not _other_deeds(moment, new) and changed[0].ref not in seen:
            seen.add(changed[0].ref)
            yield _finding(moment, changed)


def _deleted_only(moment: Moment, new: Release) -> list[Resource]:
    """Hooks that a successful sync deleted to recreate them, and did not create."""
    created = {event.object for event in moment.events() if event.effect == "created"}
    deleted = {ref for one in moment.ended.operations if one.phase == "Succeeded" for ref in one.hooks_deleted}
    return [hook for hook in new.resources if hook.ref in deleted and hook.ref not in created]


def _with_old_results(moment: Moment, skipped: list[Resource]) -> Finding:
    first = skipped[0].ref
    return found(
        RULE,
        moment,
        objects=[hook.ref for hook in skipped],
        damage="failed-deploy",
        message=f"the sync succeeds and applies nothing: hook {first} is deleted and does not run",
        details=(
            "The sync was started by an `operation` in the Application, and `status.operationState` of the last sync "
            "was not cleared. The pass that deletes the hook records no result, so the next one reads those of the "
            "last sync: every object is Synced, every hook has succeeded.",
        ),
        places=[order_of(hook) for hook in skipped],
        evidence=[event for event in moment.events() if event.verb == "delete" and event.object == first],
        confirm=f"kubectl get {first.kind.lower()} {first.name} -n {first.namespace}  # after the sync: NotFound",
        way_out=(
            "Start the sync with `argocd app sync`, or clear the state in the same write: kubectl patch application "
            '... --type merge -p \'{"operation": {"sync": {}}, "status": {"operationState": null}}\'.',
        ),
    )


def _applied_alone(moment: Moment, new: Release) -> list[Event]:
    """The writes of a sync of selected resources: it runs no hooks."""
    if not any(flag.startswith(SELECTED) for flag in moment.ended.flags):
        return []
    events = (event for event in moment.events() if event.actor == ARGOCD and event.effect in ("created", "changed"))
    return [event for event in events if new.find(event.object) is not None]


def _left_out(moment: Moment, changed: list[Resource], applied: list[Event]) -> Finding:
    first, named = applied[0].object, ", ".join(str(hook.ref) for hook in changed)
    return found(
        RULE,
        moment,
        objects=[hook.ref for hook in changed],
        damage="failed-deploy",
        message=f"a sync of selected resources applies {first} without its hook {named}",
        details=(
            f"{named} changed too. A sync of selected resources (--resource, the list in the UI) runs no hooks. It "
            "succeeds, and what the hooks prepare for this commit is missing.",
        ),
        places=[order_of(hook) for hook in changed],
        evidence=applied[:1],
        confirm=f"kubectl get {in_kubectl(changed[0].ref)} -o yaml  # still that of the last full sync",
        way_out=(f"Sync the whole Application: `argocd app sync {moment.ended.release}` without --resource.",),
    )


def _has_changed(old: Release, hook: Resource) -> bool:
    """Whether a hook that a sync would run differs from the deployed one."""
    if not argocd_hooks.is_hook(hook.body) or not argocd_hooks.phases_of(hook.body):
        return False
    was = old.find(hook.ref)
    return was is None or _content(was.body) != _content(hook.body)


def _content(body: Body) -> Body:
    """The body without labels and annotations, which do not affect what a hook does."""
    return {key: value for key, value in body.items() if key != "metadata"}


def _other_deeds(moment: Moment, new: Release) -> bool:
    """Whether the sync changed a regular resource: then it would have started by itself."""
    hooked = {r.ref for r in new.resources if argocd_hooks.is_hook(r.body)}
    events = (event for event in moment.events() if event.actor == ARGOCD and event.effect in DEEDS)
    return any(event.object not in hooked for event in events)


def _finding(moment: Moment, changed: list[Resource]) -> Finding:
    named = ", ".join(str(hook.ref) for hook in changed)
    return found(
        RULE,
        moment,
        objects=[hook.ref for hook in changed],
        damage="failed-deploy",
        message=f"automated sync does not start for {moment.ended.source}: only {named} changed, and hooks "
        "are not compared",
        details=(
            "The Application stays Synced. The hook runs when another change starts a sync, or when a user syncs by "
            "hand, as this rehearsal does.",
        ),
        places=[order_of(hook) for hook in changed],
        confirm=f"argocd app get {moment.ended.release} --refresh  # Sync Status: Synced",
    )


RULE = Rule("ST811", "argocd-hook-skipped", check)
