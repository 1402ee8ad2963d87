"""A post-delete hook needs an object of the release, which is gone by the time it runs.

## What happens
Post-delete hooks run when every plain object of the release has been deleted: the account, its roles, the Secrets, the
Service of the database. A hook's pod that names one of them is refused or does not start. Helm waits until `--timeout`,
then says `uninstallation completed with 1 error(s)`, and the release is gone. What the hook was to clean up stays, and
so does its Job.

The install and all upgrades are fine: nobody meets this before the last day. `helm uninstall` once more does not help,
as there is no release any more.

With Flux the HelmRelease says `Helm uninstall failed`; when it is tried again there is no release any more, and the
HelmRelease goes.

Argo CD runs them as `PostDelete` hooks, all at once and without a timeout: the Application stays for as long as one of
them has not ended.

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
Run it as `pre-delete`, while everything is there; or give it an account, roles and Secrets of its own as post-delete
hooks of a lower weight, with `before-hook-creation,hook-succeeded,hook-failed`.

## Fix safety
A pre-delete hook that fails keeps the release from being uninstalled; a post-delete hook does not.
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
from seatrial.model.timeline import Event, Rehearsal
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

NOT_BROUGHT = ("plain", "later", "never")


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    for moment in moments(rehearsal, case):
        release = acted_on(case, moment.index) if is_argocd(rehearsal) and moment.ended.action == "delete" else None
        for hook in release.resources if release else ():
            if hook.ref in moment.ended.waits_for and argocd_hooks.runs_on_deletion(hook.body, "PostDelete"):
                yield from _after_an_application(moment, hook)
    for lack in lacks(rehearsal, case):
        if lack.event == "post-delete" and lack.why in NOT_BROUGHT:
            yield _finding(rehearsal, case, lack)


def _after_an_application(moment: Moment, hook: Resource) -> Iterator[Finding]:
    """A PostDelete hook of Argo CD that needs what went with its Application."""
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
        message=f"deleting the Application never ends: the PostDelete hook {hook.ref} {how(need)} {need.object}, "
        "which is gone with the Application",
        details=(
            "PostDelete hooks run when every object of the Application is deleted.",
            says(moment, need.object),
            "The Application stays until somebody takes off its finalizer, post-delete-finalizer.argocd.argoproj.io.",
        ),
        places=[hook.place(*need.field), brought.place("metadata", "name")],
        evidence=[deleted[need.object]],
        confirm=f"kubectl describe {in_kubectl(hook.ref)}  # while the Application is being deleted",
    )


def _finding(rehearsal: Rehearsal, case: Case, lack: Lack) -> Finding:
    moment = Moment(rehearsal, case, lack.step)
    assert lack.brought is not None
    gone = _deletion(rehearsal, lack)
    return found(
        RULE,
        moment,
        objects=[lack.hook.ref, lack.need.object],
        damage="failed-deploy",
        message=f"{ends(moment, lack.hook.ref)}: {hook_needs(lack)}, {absent(rehearsal, lack)}",
        details=(
            "Post-delete hooks run when Helm has deleted every plain object of the release." if gone else "",
            ends_sentence(rehearsal, case, lack),
            f"The release is gone then{_stays(lack)}: uninstalling once more does not run it.",
            goes_on(own) if (own := failed_release(rehearsal.steps[lack.step], lack.hook.ref)) else "",
        ),
        places=[lack.hook.place(*lack.need.field), lack.brought.place("metadata", "name")],
        evidence=[*([gone] if gone else []), *evidence_of(rehearsal, case, lack)],
        confirm=look_at(lack),
    )


def _deletion(rehearsal: Rehearsal, lack: Lack) -> Event | None:
    gone = (e for e in rehearsal.of_step(lack.step) if e.object == lack.need.object and e.effect == "deleted")
    return next(gone, None)


def _stays(lack: Lack) -> str:
    return "" if hooks.FAILED in hooks.delete_policies(lack.hook.body) else f", and {lack.hook.ref} stays"


RULE = Rule("ST222", "post-delete-hook-cannot-run", check)
