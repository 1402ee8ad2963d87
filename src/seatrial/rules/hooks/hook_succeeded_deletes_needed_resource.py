"""A hook that Helm deletes once it has succeeded is needed by something that comes after.

## What happens
`hook-succeeded` takes effect when all hooks of the event have succeeded, in reverse order. An account, a Secret, a Role
or a ConfigMap has succeeded as soon as it is there. So such a pre-install hook serves the other pre-install hooks, is
deleted, and only then Helm makes the workloads: what they name is gone. Nor can a post-install hook use what a
pre-install hook has brought.

Helm reports success. The pods say that something is not found, although `helm get hooks` lists it.

Argo CD deletes such hooks when the whole operation has succeeded. The last wave is not waited for, so that pods may not
even be made by then; those that are go on, and the next one, on another node or after a crash, finds nothing. Every
sync repeats that.

## Example
```yaml
apiVersion: v1
kind: ServiceAccount
metadata:
  name: app                 # the Deployment of the chart runs as it
  annotations:
    helm.sh/hook: pre-install,pre-upgrade
    helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
```

## Instead
Make it a plain object, and give the hooks a copy of their own under another name, which may have `hook-succeeded`.
To drop only `hook-succeeded` is not enough: every upgrade then deletes the object before it makes it anew.

## Fix safety
After a successful run the hook's object is gone, so Helm can make the plain one without a conflict of ownership.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.argocd.syncs import done_by_argocd, operations
from seatrial.evidence.history import as_plain
from seatrial.evidence.hooks.runs import Lack, done_by_helm, event_of, helm_act, lacks
from seatrial.evidence.moment import Moment, found, moments
from seatrial.helm import argocd_hooks, hooks
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case, Release, Resource
from seatrial.model.resource import Ref, annotations_of
from seatrial.model.timeline import Event, Rehearsal
from seatrial.phrases.hooks import ends, ends_sentence, evidence_of, hook_needs, look_at, says
from seatrial.phrases.objects import consumers_sentence, in_kubectl, users_beyond_hooks
from seatrial.phrases.outcome import aftermath

POLICY = "Its delete policy is hook-succeeded, and anything but a Job or a Pod has succeeded as soon as it is there."


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    for moment in moments(rehearsal, case):
        if moment.release is not None:
            yield from _for_workloads(moment, moment.release)
    for lack in lacks(rehearsal, case):
        if lack.why == "deleted":
            yield _for_a_hook(rehearsal, case, lack)
    told: set[Ref] = set()
    for step, operation in operations(rehearsal):
        moment = Moment(rehearsal, case, step)
        for ref in operation.hooks_deleted:
            if ref not in told and moment.live(ref) is None:
                told.add(ref)
                yield from _after_a_sync(moment, ref)


def _for_workloads(moment: Moment, release: Release) -> Iterator[Finding]:
    for resource in release.resources:
        if not _deletes_itself(resource, moment.ended.action) or as_plain(release, resource.ref):
            continue
        users = [edge for edge in users_beyond_hooks(release, resource.ref) if not edge.need.optional]
        deletion = _last_deletion(moment, resource) if users else None
        if deletion is not None and moment.live(resource.ref) is None:
            yield _finding(moment, release, resource, deletion)


def _after_a_sync(moment: Moment, ref: Ref) -> Iterator[Finding]:
    """A hook that Argo CD deletes with the end of a sync, and that plain objects need."""
    release, hook = moment.release, moment.case.written(moment.index, ref)
    edges = users_beyond_hooks(release, ref) if release else []
    users = [edge.user for edge in edges if not edge.need.optional and not argocd_hooks.is_hook(edge.user.body)]
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
        message=f"the sync deletes {ref} when all of it has succeeded, and {users[0].ref} needs it from then on",
        details=(
            "Its delete policy is HookSucceeded, which is about the whole operation, and the last wave of that is not "
            "waited for: pods that run by then go on, and none is made any more.",
            consumers_sentence(release, ref, says(moment, ref)),
        ),
        places=[hook.place("metadata", "annotations", key)],
        evidence=[deletion],
        confirm=f"kubectl get {in_kubectl(ref)}",
    )


def _deletes_itself(resource: Resource, action: str) -> bool:
    return hooks.SUCCEEDED in hooks.delete_policies(resource.body) and hooks.runs_at(resource.body, action)


def _last_deletion(moment: Moment, resource: Resource) -> Event | None:
    done = list(done_by_helm(moment, resource.ref))
    return done[-1] if done and done[-1].effect in ("deleted", "deleting") else None


def _finding(moment: Moment, release: Release, resource: Resource, deletion: Event) -> Finding:
    ref, ended = resource.ref, moment.ended
    event = event_of(moment, resource)
    user = users_beyond_hooks(release, ref)[0].user.ref
    reported = "Helm reported success." if ended.outcome == "ok" else f"The {ended.action} {ended.outcome}."
    return found(
        RULE,
        moment,
        objects=[ref],
        damage="outage",
        message=f"{helm_act(moment, ref)} deletes {ref} when its {event} hooks have succeeded, and {user} "
        "needs it then",
        details=(
            f"{POLICY} {reported}",
            consumers_sentence(release, ref, says(moment, ref)),
            f"helm get hooks {ended.release} still lists it.",
        ),
        places=[resource.place("metadata", "annotations", hooks.DELETE_POLICY)],
        evidence=[*(e for e in done_by_helm(moment, ref) if e.index < deletion.index), deletion],
        confirm=f"kubectl get {in_kubectl(ref)}",
    )


def _for_a_hook(rehearsal: Rehearsal, case: Case, lack: Lack) -> Finding:
    moment = Moment(rehearsal, case, lack.step)
    assert lack.brought is not None
    ref = lack.need.object
    deleted = [e for e in rehearsal.of_object(ref) if e.effect == "deleted" and e.step <= lack.step]
    return found(
        RULE,
        moment,
        objects=[ref],
        damage="failed-deploy",
        message=f"{ends(moment, lack.hook.ref)}: {hook_needs(lack)}, which Helm deleted when it had succeeded",
        details=(
            f"{POLICY} It is a hook of {', '.join(hooks.events_of(lack.brought.body))} only.",
            ends_sentence(rehearsal, case, lack),
            aftermath(moment, lack.hook.ref),
        ),
        places=[
            lack.brought.place("metadata", "annotations", hooks.DELETE_POLICY),
            lack.hook.place(*lack.need.field),
        ],
        evidence=[*deleted[-1:], *evidence_of(rehearsal, case, lack)],
        confirm=look_at(lack),
    )


RULE = Rule("ST210", "hook-succeeded-deletes-needed-resource", check)
