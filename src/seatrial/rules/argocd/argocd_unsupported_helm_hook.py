"""Argo CD does not support the event of a Helm hook, so the hook never runs, without an error.

## What happens
Argo CD supports `pre-install`, `pre-upgrade`, `post-install` and `post-upgrade`; since 2.10 `post-delete` and since 3.3
`pre-delete`, which run when the Application is deleted. An object with only other events is still a hook: it is neither
applied nor pruned, has no status, and the Application is `Synced`. For Argo CD a rollback is a sync of an older commit,
so `pre-rollback` and `post-rollback` do not exist.

Argo CD renders every revision as an install: a hook inside `{{ if .Release.IsUpgrade }}` is never rendered, so it never
runs either.

Tests (`helm.sh/hook: test`) do not run either. That is expected, and not reported.

## Example
```yaml
apiVersion: batch/v1
kind: Job
metadata:
  name: restore-backup
  annotations:
    helm.sh/hook: pre-rollback
```

## Instead
Add Argo CD's own annotation: `argocd.argoproj.io/hook: SyncFail` runs after a failed sync, `PreSync` in every sync,
`PostDelete` when the Application is deleted.

## Fix safety
A hook that runs in every sync must be idempotent.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.argocd.syncs import ARGOCD, is_argocd
from seatrial.evidence.moment import Moment, found
from seatrial.helm import argocd_hooks, hooks
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case, Resource
from seatrial.model.resource import annotations_of
from seatrial.model.timeline import Rehearsal

TESTS = hooks.EVENTS_OF["test"]
AT_DELETION = hooks.EVENTS_OF["uninstall"]
SINCE = {"pre-delete": "3.3", "post-delete": "2.10"}


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    if not is_argocd(rehearsal):
        return
    made = {event.object for event in rehearsal.timeline if event.actor == ARGOCD and event.effect == "created"}
    seen = set()
    for step, release in enumerate(case.releases):
        for hook in release.resources if release and rehearsal.steps[step].outcome == "ok" else ():
            if hook.ref not in made and hook.ref not in seen and _is_left_out(rehearsal, hook):
                seen.add(hook.ref)
                yield _finding(Moment(rehearsal, case, step), hook)
        for hook in release.left_out if release else ():
            if hook.ref not in made and hook.ref not in seen and not _is_test(hook):
                seen.add(hook.ref)
                yield _unrendered(Moment(rehearsal, case, step), hook)


def _is_left_out(rehearsal: Rehearsal, hook: Resource) -> bool:
    """Whether Argo CD never runs this Helm hook, and it is not just a test."""
    events = hooks.events_of(hook.body)
    if argocd_hooks.HOOK in annotations_of(hook.body) or not argocd_hooks.is_ignored(hook.body):
        return False
    deleted = any(ended.action == "delete" and ended.outcome == "ok" for ended in rehearsal.steps)
    later = any(event in AT_DELETION for event in events)
    return not all(event in TESTS for event in events) and (deleted or not later)


def _is_test(hook: Resource) -> bool:
    return all(event in TESTS for event in hooks.events_of(hook.body))


def _unrendered(moment: Moment, hook: Resource) -> Finding:
    return found(
        RULE,
        moment,
        objects=[hook.ref],
        damage="nuisance",
        message=f"{hook.ref} never runs: it is rendered for upgrades only, and Argo CD renders installs",
        details=(
            "`.Release.IsUpgrade` is always false, and `.Release.IsInstall` always true.",
            "The Application is Synced and Healthy without it.",
        ),
        way_out=(
            f"Remove the condition around {hook.ref}: with the hook annotation alone, every sync runs it. It must then "
            "be idempotent.",
        ),
        places=[hook.place("metadata", "annotations", hooks.HOOK)],
        confirm=f"helm template . | grep {hook.ref.name}  # renders what Argo CD renders",
    )


def _finding(moment: Moment, hook: Resource) -> Finding:
    events = [event for event in hooks.events_of(hook.body) if event not in TESTS]
    version = moment.engine.version
    since = [f"{event} since {SINCE[event]}" for event in events if event in SINCE]
    return found(
        RULE,
        moment,
        objects=[hook.ref],
        damage="nuisance",
        message=f"{hook.ref} never runs: Argo CD {version} does not support {', '.join(events)}",
        details=(
            "It is a hook without a phase: neither applied nor pruned, without a status; the Application is Synced.",
            f"Argo CD runs {', '.join(since)}." if since else "",
            "A rollback with Argo CD is a sync of an older commit, which runs its PreSync and PostSync hooks."
            if any("rollback" in event for event in events)
            else "",
        ),
        places=[hook.place("metadata", "annotations", hooks.HOOK)],
        confirm=f"argocd app resources {moment.ended.release}  # does not list it",
    )


RULE = Rule("ST813", "argocd-unsupported-helm-hook", check)
