"""A pod asks for an object of the same release whose kind Helm does not know, and which it therefore makes last.

## What happens
Helm makes plain objects kind by kind, in an order that it has a list for. What is not in the list comes after all else,
by the name of the kind: custom resources, and some kinds of Kubernetes itself such as RuntimeClass. A pod that names a
RuntimeClass of its own release is refused, because the class comes later: `pod rejected: RuntimeClass "sandbox" not
found`. A plain Pod fails the install there and then. A Deployment or a Job makes its pods through a controller, which
is refused and tries again some time later: the release gets there, after events that look alarming.

The second install of the same chart finds the class and goes through: it hides until there is a new cluster.
PriorityClass has been in the list since Helm 3.13. That SecurityContextConstraints of OpenShift come last as well is
not shown here: whether a pod needs one depends on who may use which.

## Example
```yaml
apiVersion: node.k8s.io/v1
kind: RuntimeClass
metadata:
  name: sandbox
---
apiVersion: v1
kind: Pod
spec:
  runtimeClassName: sandbox
```

## Instead
Give the object a release of its own that comes first. Or make it a pre-install hook: it is there before the pods then,
and neither an upgrade nor uninstalling touches it again.

## Fix safety
What becomes a hook is deleted by the upgrade that makes it one (see release-to-hook-flip): let the object carry
`helm.sh/resource-policy: keep` one revision before.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial import hooks
from seatrial.case import Case, Release, Resource
from seatrial.findings import Finding, Rule, found
from seatrial.graph import needs_of
from seatrial.kindorder import is_known
from seatrial.kinds import Need
from seatrial.rules.aftermath import aftermath
from seatrial.rules.deeds import owner_of
from seatrial.rules.words import in_kubectl
from seatrial.timeline import Event, Rehearsal


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    told: set[tuple[object, object]] = set()
    for step, release in enumerate(case.releases):
        if release is None:
            continue
        for user, need, brought in _last_ones(release):
            key = user.ref, need.object
            refused = _refused(rehearsal, step, user, need)
            if refused is not None and key not in told:
                told.add(key)
                yield _finding(rehearsal, case, step, user, need, brought, refused)


def _last_ones(release: Release) -> Iterator[tuple[Resource, Need, Resource]]:
    """Plain objects that name a plain object of a kind that comes last."""
    for user in release.resources:
        if hooks.is_hook(user.body):
            continue
        for need in needs_of(user):
            brought = None if need.guess or is_known(need.object.kind) else release.find(need.object)
            if brought is not None and not hooks.is_hook(brought.body):
                yield user, need, brought


def _refused(rehearsal: Rehearsal, step: int, user: Resource, need: Need) -> Event | None:
    """The first refusal of a user, or of what it owns, for want of an object that Helm makes later in the same step."""
    words = f'{need.object.kind} "{need.object.name}" not found'
    refused = None
    for event in rehearsal.of_step(step):
        if refused is None and event.effect in ("refused", "said") and words in event.message:
            is_of_user = user.ref in (event.object, owner_of(rehearsal, step, event.object))
            refused = event if is_of_user else None
        if event.object == need.object and event.effect == "created" and event.actor == "helm":
            return refused
    return None


def _finding(
    rehearsal: Rehearsal, case: Case, step: int, user: Resource, need: Need, brought: Resource, refused: Event
) -> Finding:
    ended = rehearsal.steps[step]
    fails = refused.actor == "helm"
    return found(
        RULE,
        rehearsal,
        step,
        objects=[user.ref, need.object],
        damage="failed-deploy" if fails else "nuisance",
        message=f"{user.ref} asks for {need.object}, which Helm makes last: "
        + (f"helm {ended.action} fails" if fails else "its pods are refused at first"),
        details=(
            f'The API server says: "{refused.message}"',
            f"Helm's order of kinds does not know {need.object.kind}: such objects come after all others.",
            aftermath(rehearsal, case, step)
            if fails
            else "The controller tries again, after pauses that grow to minutes; nothing has to be done but wait.",
            "On a cluster that has it already, all goes well: that hides it.",
        ),
        places=[user.place(*need.field), brought.place("metadata", "name")],
        evidence=[refused],
        confirm=f"kubectl describe {in_kubectl(user.ref)}  # its events",
    )


RULE = Rule("ST112", "helm-unknown-kind-installed-last", check)
