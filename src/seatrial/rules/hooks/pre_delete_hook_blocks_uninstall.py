"""A pre-delete hook fails or never completes, so Helm deletes nothing.

## What happens
Helm runs pre-delete hooks first. If one fails or does not complete, the uninstall stops there: nothing is deleted, and
the release keeps the status `uninstalling`, in which it can be neither upgraded nor installed again. Whatever the hook
needs at that moment (a server that answers, permissions, an image, time) decides whether the release can be removed.

Without `before-hook-creation` a retry is worse. Helm 3 reports that the Job already exists. Helm 4 applies it, finds
the failed Job of the first attempt, and fails at once.

What a program does cannot be seen in manifests. This is reported if the hook fails or hangs in a rehearsal, not if it
merely could.

## Example
```yaml
apiVersion: batch/v1
kind: Job
metadata:
  name: app-leave
  annotations:
    helm.sh/hook: pre-delete
    helm.sh/hook-delete-policy: hook-succeeded
```

## Instead
Let the Job succeed in every case (`command || true`), with a deadline, and add `before-hook-creation` to its delete
policies. `helm uninstall --no-hooks` removes a release that is stuck.

## Fix safety
`--no-hooks` skips the hook's work: what it would have cleaned up stays.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.faults import faults
from seatrial.evidence.hooks.refused_commands import refused_commands
from seatrial.evidence.hooks.runs import acted_on, done_by_helm, lacks, left_over
from seatrial.evidence.moment import Moment, found, moments
from seatrial.helm import hooks
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case, Resource
from seatrial.model.resource import Ref
from seatrial.model.timeline import Rehearsal
from seatrial.phrases.hooks import ends
from seatrial.phrases.objects import in_kubectl
from seatrial.phrases.outcome import helm_says


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    explained = {(lack.step, lack.hook.ref) for lack in lacks(rehearsal, case) if lack.why != "missing"}
    explained |= {(refused.step, refused.owner.ref) for refused in refused_commands(rehearsal, case)}
    seen: set[Ref] = set()
    for moment in moments(rehearsal, case):
        release = acted_on(case, moment.index)
        if moment.ended.action != "uninstall" or moment.ended.outcome == "ok" or release is None:
            continue
        for hook in release.resources:
            if _blocks(moment, hook) and (moment.index, hook.ref) not in explained and hook.ref not in seen:
                seen.add(hook.ref)
                yield _finding(moment, hook)


def _blocks(moment: Moment, hook: Resource) -> bool:
    """Whether Helm stopped at this hook: it waits for it, names it in its error, or could not create it."""
    if "pre-delete" not in hooks.events_of(hook.body):
        return False
    result = moment.ended
    refused = any(e.effect == "refused" and e.verb != "delete" for e in done_by_helm(moment, hook.ref))
    # Helm does not name the group of an object, and the hook may be deleted by now.
    not_ready = any(str(fault.object) == str(hook.ref) for fault in faults(result.failure, "not-ready"))
    return refused or hook.ref in result.waits_for or not_ready


def _finding(moment: Moment, hook: Resource) -> Finding:
    result, ref = moment.ended, hook.ref
    how = "does not complete" if result.outcome == "hung" else "fails"
    return found(
        RULE,
        moment,
        objects=[ref],
        damage="failed-deploy",
        message=f"{ends(moment, ref)} and deletes nothing: the pre-delete hook {ref} {how}",
        details=(
            helm_says(result, ref),
            "The release keeps the status uninstalling: it can be neither upgraded nor installed again. helm uninstall "
            f"{result.release} --no-hooks removes it, but skips the hook's work.",
            _retry(moment, hook),
        ),
        places=[hook.place("metadata", "annotations", hooks.HOOK)],
        evidence=[e for e in done_by_helm(moment, ref) if e.verb != "delete"][-1:],
        confirm=f"kubectl describe {in_kubectl(ref)}",
    )


def _retry(moment: Moment, hook: Resource) -> str:
    """What another uninstall does with the Job that the first one left."""
    later = [i for i, s in enumerate(moment.rehearsal.steps) if i > moment.index and s.action == "uninstall"]
    if hooks.BEFORE_CREATION in hooks.delete_policies(hook.body):
        return ""
    met = left_over(moment.at(later[0]), hook) if later else None
    if met is None:
        return f'Nothing deletes {hook.ref} before a retry, so Helm 3 then fails with "already exists".'
    return (
        f"A retry finds the {hook.ref.kind} of this attempt, because nothing deletes it first, and fails at once; Helm "
        '3: "already exists".'
    )


RULE = Rule("ST221", "pre-delete-hook-blocks-uninstall", check)
