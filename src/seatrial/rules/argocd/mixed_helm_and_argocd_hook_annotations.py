"""An object has hook annotations of both Helm and Argo CD, and they differ.

## What happens
Argo CD reads both. If `argocd.argoproj.io/hook` names a phase of a sync, it takes precedence, for this object only;
otherwise Helm's annotation applies. The delete policies of both are combined: `before-hook-creation` and
`HookSucceeded` both apply. It is often said that one Argo CD hook disables all Helm hooks; that is not true.

So a Job with `pre-install` for Helm and `PostSync` for Argo CD runs before the app in one and after it in the other.
That may be intended, so it **may** matter. `PreDelete` and `PostDelete` are not phases of a sync, so such a hook also
runs in every sync by Helm's annotation; that is not intended.

## Example
```yaml
metadata:
  annotations:
    helm.sh/hook: pre-install,pre-upgrade
    argocd.argoproj.io/hook: PostSync
```

## Instead
Use the annotations of the engine that deploys it. For charts that serve both, use the phase that Helm's events map to:
`PreSync` for pre-install and pre-upgrade, `PostSync` for post-install and post-upgrade.

## Fix safety
Removing Argo CD's annotation moves the hook to the phase of Helm's annotation.
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
    """Whether a hook with both annotations runs in other phases than Helm's or Argo CD's alone."""
    written = annotations_of(resource.body)
    if argocd_hooks.HOOK not in written or hooks.HOOK not in written:
        return False
    return set(phases) != _by_helm(resource) or _on_deletion(resource) is not None


def _by_helm(resource: Resource) -> set[str]:
    events = hooks.events_of(resource.body)
    return {argocd_hooks.FROM_HELM[event] for event in events if event in argocd_hooks.FROM_HELM}


def _on_deletion(resource: Resource) -> str | None:
    """The deletion hook in Argo CD's annotation, which is not a phase of a sync."""
    named = annotations_of(resource.body)[argocd_hooks.HOOK]
    return next((word for word in argocd_hooks.ON_DELETION if word in named.replace(" ", "").split(",")), None)


def _finding(moment: Moment, resource: Resource, phases: list[str]) -> Finding:
    written, ref = annotations_of(resource.body), resource.ref
    leaves = _on_deletion(resource)
    ran = " and ".join(phases)
    message = f"{ref} has two hook annotations: {written[hooks.HOOK]} for Helm, {ran} for Argo CD"
    if leaves:
        message = f"{ref} is a {leaves} hook; Helm's annotation also runs it in {ran} of every sync"
    policies = " and ".join(dict.fromkeys(argocd_hooks.delete_policies(resource.body)))
    return found(
        RULE,
        moment,
        objects=[ref],
        damage="nuisance",
        certainty="will" if leaves else "may",
        message=message,
        details=(
            f"{leaves} is not a phase of a sync, so there {written[hooks.HOOK]} applies." if leaves else "",
            f"The delete policies of both are combined: {policies}.",
            "" if leaves else "If that is intended, nothing is wrong.",
        ),
        places=[
            resource.place("metadata", "annotations", argocd_hooks.HOOK),
            resource.place("metadata", "annotations", hooks.HOOK),
        ],
        confirm=f"argocd app get {moment.ended.release} --show-operation  # lists it with its phase",
    )


RULE = Rule("ST814", "mixed-helm-and-argocd-hook-annotations", check)
