"""Helm deletes a hook object to recreate it, but a finalizer keeps the old one, so the new one is never created.

## What happens
`before-hook-creation` deletes the object with the hook's name just before Helm creates the hook. An object with
finalizers is not deleted at once: a PVC stays while a pod mounts it, even a completed one; a custom resource stays
until its operator removes the finalizer. The pod of the last run is deleted with its Job, but the Job comes after the
PVC, by weight.

- Helm 4 without `--wait` does not wait for deletions. It applies the PVC to the one that is being deleted, nothing
  changes, and a moment later there is none. The new pod reports that the PVC is `being deleted`, then `not found`, and
  Helm waits until `--timeout`.
- Helm 3 (from 3.14) and Helm 4 with `--wait` wait for the deletion and fail: `context deadline exceeded`.
- Older versions fail with `object is being deleted: persistentvolumeclaims "x" already exists`.

The install works, and so does every cluster that was cleaned up by hand.

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
Use `before-hook-creation,hook-succeeded` on both: from Helm 3.16.3 on, hooks that succeeded are deleted in reverse
order, the Job before its PVC. Or use an `emptyDir`, or a PVC that is a regular resource.

## Fix safety
`hook-succeeded` does not delete a hook that failed. Add `hook-failed` if its logs are kept elsewhere.
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
            if deletion is not None and hook.ref not in seen and _does_harm(moment, release, deletion):
                seen.add(hook.ref)
                yield _finding(moment, hook, deletion)


def _does_harm(moment: Moment, release: Release | None, deletion: Event) -> bool:
    """Whether only hooks miss the object; what others lose with it is reported by other rules."""
    ref, result = deletion.object, moment.ended
    if release is None or users_beyond_hooks(release, ref) or cascade(moment.rehearsal, deletion):
        return False
    return ref in (*result.waits_for, *result.lacking) or moment.live(ref) is None


def _finding(moment: Moment, hook: Resource, deletion: Event) -> Finding:
    ref, result = hook.ref, moment.ended
    event, waits = event_of(moment, hook), ref in result.waits_for
    what = (
        f"Helm waits forever for the deletion of {ref} before the {event} hook"
        if waits
        else f"hook {ref} is applied to the object that is being deleted"
    )
    if result.outcome == "ok" and not waits:
        what = f"{ref} is lost: Helm applies it to the one being deleted"
    return found(
        RULE,
        moment,
        objects=[ref],
        damage="failed-deploy",
        message=f"{ends(moment, ref)}{', but' if result.outcome == 'ok' else ':'} {what}",
        details=(
            _held_by(moment.rehearsal, deletion),
            f"Helm {result.error.strip()}." if result.outcome == "hung" and not waits else "",
            ""
            if waits
            else "Helm 3 (from 3.14), and Helm 4 with --wait, wait for the deletion and fail: "
            '"context deadline exceeded"; older versions: "object is being deleted".',
        ),
        places=[hook.place("metadata", "annotations", hooks.HOOK)],
        evidence=[deletion],
        confirm=f"kubectl get {in_kubectl(ref)} -o jsonpath='{{.metadata.deletionTimestamp}} {{.metadata.finalizers}}'",
    )


def _held_by(rehearsal: Rehearsal, deletion: Event) -> str:
    """What keeps the object: its finalizers, and a pod that mounts it."""
    ref, body = deletion.object, deletion.after or {}
    pods = [
        other
        for other, pod in state(rehearsal, deletion).items()
        if other.kind == "Pod" and other.namespace == ref.namespace and ref.kind == "PersistentVolumeClaim"
        if name_of(body) in (name for _, name in claims_of(pod.get("spec") or {}, other.name))
    ]
    held = ", ".join(finalizers_of(body))
    kept = f"It has the finalizer {held}." if held else "Everything in it is deleted first."
    return f"{kept} {pods[0]} of the last run still mounts it, even if it has completed." if pods else kept


RULE = Rule("ST215", "hook-recreate-races-finalizer", check)
