"""A post-delete hook needs an object of the release, which is deleted before the hook runs.

## What happens
Helm runs post-delete hooks after it has deleted every regular resource: the ServiceAccount, its roles, the Secrets, the
Service of the database. A hook pod that needs one of them is rejected or does not start. Helm waits until `--timeout`
and then reports `uninstallation completed with 1 error(s)`; the release is gone. What the hook should clean up stays,
and so does its Job.

The install and all upgrades work, so the problem shows only on uninstall. Running `helm uninstall` again does not help,
because the release no longer exists.

With Flux the HelmRelease reports `Helm uninstall failed`. On the retry there is no release any more, and the
HelmRelease is deleted.

Argo CD runs post-delete hooks as `PostDelete` hooks, all at once and without a timeout: the Application stays until all
of them have completed.

## Example
```yaml
apiVersion: batch/v1
kind: Job
metadata:
  name: app-cleanup
  annotations: {helm.sh/hook: post-delete}
spec:
  template:
    spec:
      serviceAccountName: app      # deleted with the release
```

## Instead
Run it as `pre-delete`, while everything exists; or give it its own ServiceAccount, roles and Secrets as post-delete
hooks of a lower weight, with `before-hook-creation,hook-succeeded,hook-failed`.

## Fix safety
A pre-delete hook that fails blocks the uninstall; a post-delete hook does not.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.argocd.syncs import is_argocd
from seatrial.evidence.flux.reconciliations import failed_release, goes_on
from seatrial.evidence.hooks.runs import Lack, acted_on, lacks
from seatrial.evidence.moment import Moment, found, moments
from seatrial.graph import needs_of
from seatrial.helm import argocd_hooks, hooks
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case, Resource
from seatrial.model.timeline import Rehearsal
from seatrial.phrases.hooks import (
    absent,
    ends,
    ends_sentence,
    evidence_of,
    hook_needs,
    how,
    look_at,
    says,
)
from seatrial.phrases.objects import in_kubectl

IN_RELEASE = ("regular", "later", "never")
"""Why the hook does not find an object that is part of the release."""


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    for moment in moments(rehearsal, case):
        release = acted_on(case, moment.index) if is_argocd(rehearsal) and moment.ended.action == "delete" else None
        for hook in release.resources if release else ():
            if hook.ref in moment.ended.waits_for and argocd_hooks.runs_on_deletion(hook.body, "PostDelete"):
                yield from _after_an_application(moment, hook)
    for lack in lacks(rehearsal, case):
        if lack.event == "post-delete" and lack.why in IN_RELEASE:
            yield _finding(Moment(rehearsal, case, lack.step), lack)


def _after_an_application(moment: Moment, hook: Resource) -> Iterator[Finding]:
    """A PostDelete hook of Argo CD that needs an object deleted with its Application."""
    deleted = {e.object: e for e in moment.events() if e.effect == "deleted"}
    need = next((need for need in needs_of(hook) if need.object in deleted and not need.optional), None)
    brought = moment.case.written(moment.index, need.object) if need else None
    if need is None or brought is None:
        return
    yield found(
        RULE,
        moment,
        objects=[hook.ref, need.object],
        damage="failed-deploy",
        message=f"deleting the Application never ends: {hook.ref} {how(need)} deleted {need.object}",
        details=(
            "Argo CD runs PostDelete hooks after it has deleted every object of the Application.",
            says(moment, need.object),
            "The Application stays until its finalizer post-delete-finalizer.argocd.argoproj.io is removed.",
        ),
        places=[hook.place(*need.field), brought.place("metadata", "name")],
        evidence=[deleted[need.object]],
        confirm=f"kubectl describe {in_kubectl(hook.ref)}  # while the Application is being deleted",
    )


def _finding(moment: Moment, lack: Lack) -> Finding:
    assert lack.brought is not None
    deletions = (e for e in moment.events() if e.object == lack.need.object and e.effect == "deleted")
    deletion = next(deletions, None)
    return found(
        RULE,
        moment,
        objects=[lack.hook.ref, lack.need.object],
        damage="failed-deploy",
        message=f"{ends(moment, lack.hook.ref)}: {lack.hook.ref} {how(lack.need)} deleted {lack.need.object}"
        if deletion
        else f"{ends(moment, lack.hook.ref)}: {hook_needs(lack)}, {absent(moment, lack)}",
        details=(
            "Helm runs post-delete hooks after it has deleted every regular resource." if deletion else "",
            ends_sentence(moment, lack),
            f"The release is gone then{_stays(lack)}. Uninstalling again does not run the hook.",
            goes_on(own) if (own := failed_release(moment.ended, lack.hook.ref)) else "",
        ),
        places=[lack.hook.place(*lack.need.field), lack.brought.place("metadata", "name")],
        evidence=[*([deletion] if deletion else []), *evidence_of(moment, lack)],
        confirm=look_at(lack),
    )


def _stays(lack: Lack) -> str:
    return "" if hooks.FAILED in hooks.delete_policies(lack.hook.body) else f", and {lack.hook.ref} stays"


RULE = Rule("ST222", "post-delete-hook-cannot-run", check)
