"""A pre-delete hook does not succeed, and Helm deletes nothing.

## What happens
Helm runs pre-delete hooks first. When one fails or does not end, the uninstall ends there: nothing is deleted, and the
release stays in the state `uninstalling`, from which it can neither be upgraded nor be installed anew. Whatever the
hook needs at that moment - a program that answers, rights, an image, time - decides whether the release can ever go.

Without `before-hook-creation` the second try is worse than the first: Helm 3 says that the Job already exists; Helm 4
applies it, finds the Job of the first try as it failed, and fails at once.

What a program will do when it is run cannot be seen from manifests. This is told where a rehearsal has seen the hook
fail or hang, and not where it might.

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
Let the Job end well whatever it finds (`command || true`), within a deadline; `before-hook-creation` among its delete
policies. `helm uninstall --no-hooks` is the way out for those who are stuck.

## Fix safety
`--no-hooks` also leaves out what the hook was for: what it would have cleaned up stays.
"""

from __future__ import annotations

from collections.abc import Iterator

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
    explained = {(lack.step, lack.hook.ref) for lack in lacks(rehearsal, case) if lack.why != "nobody"}
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
    """Whether Helm stopped at this hook: it waits for it, names it, or was refused it."""
    if "pre-delete" not in hooks.events_of(hook.body):
        return False
    ended = moment.ended
    refused = any(e.effect == "refused" and e.verb != "delete" for e in done_by_helm(moment, hook.ref))
    return refused or hook.ref in ended.waits_for or f"resource {hook.ref} not ready" in ended.error


def _finding(moment: Moment, hook: Resource) -> Finding:
    ended, ref = moment.ended, hook.ref
    how = "does not end" if ended.outcome == "hung" else "fails"
    return found(
        RULE,
        moment,
        objects=[ref],
        damage="failed-deploy",
        message=f"{ends(moment, ref)} and deletes nothing: the pre-delete hook {ref} {how}",
        details=(
            helm_says(ended, ref),
            f"The release is left uninstalling: it can neither be upgraded nor installed anew. helm uninstall "
            f"{ended.release} --no-hooks takes it away, without what the hook is for.",
            _second_try(moment, hook),
        ),
        places=[hook.place("metadata", "annotations", hooks.HOOK)],
        evidence=[e for e in done_by_helm(moment, ref) if e.verb != "delete"][-1:],
        confirm=f"kubectl describe {in_kubectl(ref)}",
    )


def _second_try(moment: Moment, hook: Resource) -> str:
    """What another uninstall makes of the Job that the first one left."""
    later = [i for i, s in enumerate(moment.rehearsal.steps) if i > moment.index and s.action == "uninstall"]
    if hooks.BEFORE_CREATION in hooks.delete_policies(hook.body):
        return ""
    met = left_over(moment.at(later[0]), hook) if later else None
    if met is None:
        return f"Nothing deletes {hook.ref} before the next try: Helm 3 will say that it already exists."
    return (
        f"The next uninstall meets the {hook.ref.kind} of this one, since nothing deletes it first, and fails at once; "
        'Helm 3: "already exists".'
    )


RULE = Rule("ST221", "pre-delete-hook-blocks-uninstall", check)
