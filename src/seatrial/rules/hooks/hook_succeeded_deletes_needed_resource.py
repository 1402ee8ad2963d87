"""Helm deletes a hook object after success, but a workload or a later hook still needs it.

## What happens
When all hooks of an event have succeeded, Helm deletes those with `hook-succeeded`, in reverse order. A ServiceAccount,
Secret, Role or ConfigMap has succeeded as soon as it exists. So the other pre-install hooks can use it; then Helm
deletes it, and creates the workloads that use it. A post-install hook does not find it either.

Helm reports success. The pods report that the object is not found, although `helm get hooks` lists it.

Argo CD deletes such hooks when the whole sync operation has succeeded. It does not wait until the last
wave is healthy, so the pods may not exist yet. Running pods keep running, but the next pod (on another node, or after a
crash) does not find the object. Every sync repeats that.

## Example
```yaml
apiVersion: v1
kind: ServiceAccount
metadata:
  name: app                 # used by the chart's Deployment
  annotations:
    helm.sh/hook: pre-install,pre-upgrade
    helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
```

## Instead
Make it a regular resource, and give the hooks their own copy under another name, which may have `hook-succeeded`.
Removing only `hook-succeeded` is not enough: every upgrade then deletes and recreates the object.

## Fix safety
After a successful run the hook object is gone, so Helm can create the regular resource without an ownership conflict.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.argocd.syncs import done_by_argocd, operations
from seatrial.evidence.history import GOING, as_regular
from seatrial.evidence.hooks.runs import Lack, done_by_helm, event_of, helm_act, lacks
from seatrial.evidence.moment import Moment, found, moments
from seatrial.graph import Edge
from seatrial.helm import argocd_hooks, hooks
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case, Release, Resource
from seatrial.model.resource import Ref, annotations_of
from seatrial.model.timeline import Event, Rehearsal
from seatrial.phrases.hooks import ends, ends_sentence, evidence_of, how, look_at, says
from seatrial.phrases.objects import consumers_sentence, in_kubectl, users_beyond_hooks
from seatrial.phrases.outcome import after_failure

POLICY = "Its delete policy is hook-succeeded, and any object but a Job or a Pod has succeeded as soon as it exists."


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    for moment in moments(rehearsal, case):
        if moment.release is not None:
            yield from _for_workloads(moment, moment.release)
    for lack in lacks(rehearsal, case):
        if lack.why == "deleted":
            yield _for_a_hook(Moment(rehearsal, case, lack.step), lack)
    reported: set[Ref] = set()
    for step, operation in operations(rehearsal):
        moment = Moment(rehearsal, case, step)
        for ref in operation.hooks_deleted:
            if ref not in reported and moment.live(ref) is None:
                reported.add(ref)
                yield from _after_a_sync(moment, ref)


def _for_workloads(moment: Moment, release: Release) -> Iterator[Finding]:
    for resource in release.resources:
        if not _deletes_itself(resource, moment.ended.action) or as_regular(release, resource.ref):
            continue
        users = [edge for edge in users_beyond_hooks(release, resource.ref) if _is_needed(edge)]
        deletion = _last_deletion(moment, resource) if users else None
        if deletion is not None and moment.live(resource.ref) is None:
            yield _finding(moment, release, resource, deletion)


def _after_a_sync(moment: Moment, ref: Ref) -> Iterator[Finding]:
    """A hook that Argo CD deletes at the end of a sync, and that other objects need."""
    release, hook = moment.release, moment.case.written(moment.index, ref)
    edges = users_beyond_hooks(release, ref) if release else []
    users = [edge.user for edge in edges if _is_needed(edge) and not argocd_hooks.is_hook(edge.user.body)]
    deletion = next((e for e in done_by_argocd(moment, ref) if e.verb == "delete"), None)
    if release is None or hook is None or not users or deletion is None:
        return
    written = annotations_of(hook.body)
    key = argocd_hooks.DELETE_POLICY if argocd_hooks.DELETE_POLICY in written else hooks.DELETE_POLICY
    yield found(
        RULE,
        moment,
        objects=[ref],
        damage="outage",
        message=f"the sync deletes {ref} after it has succeeded, but {users[0].ref} still needs it",
        details=(
            "Its delete policy is HookSucceeded: Argo CD deletes it when the whole operation has succeeded, and does "
            "not wait for the last wave. Pods that run by then keep running, but no new pod can be created.",
            consumers_sentence(release, ref, says(moment, ref)),
        ),
        places=[hook.place("metadata", "annotations", key)],
        evidence=[deletion],
        confirm=f"kubectl get {in_kubectl(ref)}",
    )


def _deletes_itself(resource: Resource, action: str) -> bool:
    return hooks.SUCCEEDED in hooks.delete_policies(resource.body) and hooks.runs_at(resource.body, action)


def _is_needed(edge: Edge) -> bool:
    """Whether a pod cannot do without the object. A kubelet continues without a pull secret, until it has to pull."""
    return not edge.need.optional or "imagePullSecrets" in edge.need.field


def _last_deletion(moment: Moment, resource: Resource) -> Event | None:
    done = list(done_by_helm(moment, resource.ref))
    return done[-1] if done and done[-1].effect in GOING else None


def _finding(moment: Moment, release: Release, resource: Resource, deletion: Event) -> Finding:
    ref, result = resource.ref, moment.ended
    event = event_of(moment, resource)
    user = users_beyond_hooks(release, ref)[0].user.ref
    reported = "Helm reports success." if result.outcome == "ok" else f"The {result.action} {result.outcome}."
    return found(
        RULE,
        moment,
        objects=[ref],
        damage="outage",
        message=f"{helm_act(moment, ref)} deletes {ref} after its {event} hooks, but {user} needs it",
        details=(
            f"{POLICY} {reported}",
            consumers_sentence(release, ref, says(moment, ref)),
            f"helm get hooks {result.release} still lists it.",
        ),
        places=[resource.place("metadata", "annotations", hooks.DELETE_POLICY)],
        evidence=[*(e for e in done_by_helm(moment, ref) if e.index < deletion.index), deletion],
        confirm=f"kubectl get {in_kubectl(ref)}",
    )


def _for_a_hook(moment: Moment, lack: Lack) -> Finding:
    assert lack.brought is not None
    ref = lack.need.object
    deleted = [e for e in moment.rehearsal.of_object(ref) if e.effect == "deleted" and e.step <= lack.step]
    return found(
        RULE,
        moment,
        objects=[ref],
        damage="failed-deploy",
        message=f"{ends(moment, lack.hook.ref)}: hook {lack.hook.ref} {how(lack.need)} deleted {ref}",
        details=(
            f"{POLICY} It is a hook for {', '.join(hooks.events_of(lack.brought.body))} only.",
            ends_sentence(moment, lack),
            after_failure(moment, lack.hook.ref),
        ),
        places=[
            lack.brought.place("metadata", "annotations", hooks.DELETE_POLICY),
            lack.hook.place(*lack.need.field),
        ],
        evidence=[*deleted[-1:], *evidence_of(moment, lack)],
        confirm=look_at(lack),
    )


RULE = Rule("ST210", "hook-succeeded-deletes-needed-resource", check)
