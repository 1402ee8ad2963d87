"""Helm deletes a hook's object to make it anew, and a finalizer keeps the old one: the new one never comes.

## What happens
`before-hook-creation` deletes what has the hook's name, right before that hook is made. An object with finalizers does
not go at once: a claim stays for as long as a pod exists that mounts it, also one that has ended long ago; a custom
resource stays until its operator has let go. The pod of the last run is only deleted with its Job, and the Job comes
after the claim, by weight.

Helm 4 does not wait for deletions unless it is told to (`--wait`). It applies the claim onto the one that is on its way
out, nothing changes, and a moment later there is none: the pod of the new run says that it is `being deleted`, then
`not found`, and Helm waits until `--timeout`. Helm 3 (from 3.14) and Helm 4 with `--wait` wait for the deletion, in
vain: `context deadline exceeded`. Older ones say `object is being deleted: persistentvolumeclaims "x" already exists`.

The install goes well, and so does everything on a cluster where somebody has cleaned up by hand.

## Example
```yaml
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: import-scratch            # mounted by the Job of the same event
  annotations:
    helm.sh/hook: pre-upgrade
    helm.sh/hook-weight: "-5"
```

## Instead
`before-hook-creation,hook-succeeded` on both: from Helm 3.16.3 on, what has succeeded is deleted in reverse order, the
Job before its claim. Or an `emptyDir`, or a plain claim that stays.

## Fix safety
A hook that fails is not deleted by `hook-succeeded`; add `hook-failed` where its logs are kept elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.history import cascade, held_up
from seatrial.evidence.hooks.runs import acted_on, event_of
from seatrial.evidence.moment import Moment, found, moments
from seatrial.evidence.webhooks.calls import state
from seatrial.helm import hooks
from seatrial.kinds.core.objectmeta import finalizers_of
from seatrial.kinds.workloads.pod_template import claims_of
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case, Release, Resource
from seatrial.model.resource import Ref, name_of
from seatrial.model.timeline import Event, Rehearsal
from seatrial.phrases.hooks import ends
from seatrial.phrases.objects import in_kubectl, users_beyond_hooks


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    seen: set[Ref] = set()
    for moment in moments(rehearsal, case):
        release = acted_on(case, moment.index)
        for hook in release.resources if release else ():
            deletion = held_up(moment, hook.ref) if hooks.is_hook(hook.body) else None
            if deletion is not None and hook.ref not in seen and _comes_to_harm(moment, release, deletion):
                seen.add(hook.ref)
                yield _finding(moment, hook, deletion)


def _comes_to_harm(moment: Moment, release: Release | None, deletion: Event) -> bool:
    """Whether it is missed, and by hooks only: what others lose with it is told elsewhere."""
    ref, ended = deletion.object, moment.ended
    if release is None or users_beyond_hooks(release, ref) or cascade(moment.rehearsal, deletion):
        return False
    return ref in (*ended.waits_for, *ended.lacking) or moment.live(ref) is None


def _finding(moment: Moment, hook: Resource, deletion: Event) -> Finding:
    ref, ended = hook.ref, moment.ended
    event, waits = event_of(moment, hook), ref in ended.waits_for
    outcome = "waits for that in vain" if waits else "applies it onto the one that is going"
    lost = f" and leaves no {ref.name}" if ended.outcome == "ok" else ""
    return found(
        RULE,
        moment,
        objects=[ref],
        damage="failed-deploy",
        message=f"{ends(moment, ref)}{lost}: Helm deletes {ref} of the last run for the {event} hook and {outcome}",
        details=(
            _held_by(moment.rehearsal, deletion),
            f"Helm {ended.error.strip()}." if ended.outcome == "hung" and not waits else "",
            ""
            if waits
            else "Helm 3 (from 3.14) and --wait wait for the deletion and say: "
            '"context deadline exceeded"; older ones: "object is being deleted".',
        ),
        places=[hook.place("metadata", "annotations", hooks.HOOK)],
        evidence=[deletion],
        confirm=f"kubectl get {in_kubectl(ref)} -o jsonpath='{{.metadata.deletionTimestamp}} {{.metadata.finalizers}}'",
    )


def _held_by(rehearsal: Rehearsal, deletion: Event) -> str:
    """What keeps the object: a pod that mounts it, or whoever has to take the finalizer away."""
    ref, body = deletion.object, deletion.after or {}
    pods = [
        other
        for other, pod in state(rehearsal, deletion).items()
        if other.kind == "Pod" and other.namespace == ref.namespace and ref.kind == "PersistentVolumeClaim"
        if name_of(body) in (name for _, name in claims_of(pod.get("spec") or {}, other.name))
    ]
    kept = f"It has the finalizer {', '.join(finalizers_of(body))}."
    return f"{kept} {pods[0]} of the last run mounts it, whether it has ended or not." if pods else kept


RULE = Rule("ST215", "hook-recreate-races-finalizer", check)
