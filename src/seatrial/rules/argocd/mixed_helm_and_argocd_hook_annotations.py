"""An object is a hook in Helm's words and in Argo CD's, and the two do not say the same.

## What happens
Argo CD reads both. If `argocd.argoproj.io/hook` names a phase that it knows, that counts, for this object only;
otherwise Helm's annotation does. The delete policies of both are taken together: `before-hook-creation` beside
`HookSucceeded` means both. It is often read that one hook of Argo CD's switches all of Helm's off; that is not so.

So a Job with `pre-install` for Helm and `PostSync` for Argo CD runs before the app in one and after it in the other.
That may be meant, which is why it **may** matter. What Argo CD does not know is not meant: `PreDelete` and
`PostDelete` are no phases of a sync, so such a hook also runs in every sync by Helm's annotation.

## Example
```yaml
metadata:
  annotations:
    helm.sh/hook: pre-install,pre-upgrade
    argocd.argoproj.io/hook: PostSync
```

## Instead
One dialect, the one of the engine that deploys it; for charts that serve both, the phase that Helm's events translate
to: `PreSync` for pre-install and pre-upgrade, `PostSync` for post-install and post-upgrade.

## Fix safety
Taking Argo CD's annotation away moves the hook to the phase that Helm's says.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.argocd.syncs import operations
from seatrial.evidence.moment import Moment, found
from seatrial.helm import argocd_hooks, hooks
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case, Resource
from seatrial.model.resource import Ref, annotations_of
from seatrial.model.timeline import Rehearsal


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    seen: set[Ref] = set()
    for step, operation in operations(rehearsal):
        ran: dict[Ref, list[str]] = {}
        for task in operation.tasks:
            if task.hook and task.status:
                ran.setdefault(task.object, []).append(task.phase)
        for ref, phases in ran.items():
            resource = case.written(step, ref)
            if resource is not None and ref not in seen and _differs(resource, phases):
                seen.add(ref)
                yield _finding(Moment(rehearsal, case, step), resource, phases)


def _differs(resource: Resource, phases: list[str]) -> bool:
    """Whether a hook in two dialects runs elsewhere than Helm's own would, or also where Argo CD's does not say."""
    written = annotations_of(resource.body)
    if argocd_hooks.HOOK not in written or hooks.HOOK not in written:
        return False
    return set(phases) != _by_helm(resource) or _on_deletion(resource) is not None


def _by_helm(resource: Resource) -> set[str]:
    events = hooks.events_of(resource.body)
    return {argocd_hooks.FROM_HELM[event] for event in events if event in argocd_hooks.FROM_HELM}


def _on_deletion(resource: Resource) -> str | None:
    """The hook of a deletion that Argo CD's annotation names, which is no phase of a sync."""
    named = annotations_of(resource.body)[argocd_hooks.HOOK]
    return next((word for word in argocd_hooks.ON_DELETION if word in named.replace(" ", "").split(",")), None)


def _finding(moment: Moment, resource: Resource, phases: list[str]) -> Finding:
    written, ref = annotations_of(resource.body), resource.ref
    leaves = _on_deletion(resource)
    ran = " and ".join(phases)
    message = f"{ref} is a hook twice: Helm runs it at {written[hooks.HOOK]}, Argo CD in {ran}"
    if leaves:
        message = f"{ref} is a {leaves} hook, and runs in {ran} of every sync as well, by Helm's annotation"
    policies = " and ".join(dict.fromkeys(argocd_hooks.delete_policies(resource.body)))
    return found(
        RULE,
        moment,
        objects=[ref],
        damage="nuisance",
        certainty="will" if leaves else "may",
        message=message,
        details=(
            f"{leaves} is no phase of a sync: for those only {written[hooks.HOOK]} is left." if leaves else "",
            f"The delete policies of both are taken together: {policies}.",
            "" if leaves else "If that is meant, nothing is wrong.",
        ),
        places=[
            resource.place("metadata", "annotations", argocd_hooks.HOOK),
            resource.place("metadata", "annotations", hooks.HOOK),
        ],
        confirm=f"argocd app get {moment.ended.release} --show-operation  # lists it with its phase",
    )


RULE = Rule("ST814", "mixed-helm-and-argocd-hook-annotations", check)
