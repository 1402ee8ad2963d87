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

kubectl has no order of kinds at all: files go by their names, and a PriorityClass in `priorities.yaml` comes after the
Deployment in `app.yaml`. `kubectl apply -k` sorts by kind, with a list that up to kubectl 1.20 lacked PriorityClass.

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
Give the object a release of its own that comes first; with kubectl, a file that comes first by its name. Or make it a
pre-install hook: it is there before the pods then, and neither an upgrade nor uninstalling touches it again.

## Fix safety
What becomes a hook is deleted by the upgrade that makes it one (see release-to-hook-flip): let the object carry
`helm.sh/resource-policy: keep` one revision before.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.history import owner_of
from seatrial.evidence.moment import Moment, found
from seatrial.graph import needs_of
from seatrial.helm import hooks
from seatrial.helm.kindorder import is_known
from seatrial.kinds import Need
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case, Release, Resource
from seatrial.model.timeline import Event, Rehearsal
from seatrial.phrases.objects import in_kubectl
from seatrial.phrases.outcome import after_failure

MAKERS = ("helm", "kubectl")


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    told: set[tuple[object, object]] = set()
    for step, release in enumerate(case.releases):
        moment = Moment(rehearsal, case, step)
        if release is None:
            continue
        by_kubectl = rehearsal.steps[step].action == "apply"
        for user, need, brought in _last_ones(release, by_files=by_kubectl):
            key = user.ref, need.object
            refused = _refused(moment, user, need)
            if refused is not None and key not in told:
                told.add(key)
                yield _finding(moment, user, need, brought, refused)


def _last_ones(release: Release, *, by_files: bool) -> Iterator[tuple[Resource, Need, Resource]]:
    """Plain objects that name a plain object of a kind that comes last, or any at all where files have the say."""
    for user in release.resources:
        if hooks.is_hook(user.body) and not by_files:
            continue
        for need in needs_of(user):
            known = is_known(need.object.kind) and not by_files
            brought = None if need.guess or known else release.find(need.object)
            if brought is not None and (by_files or not hooks.is_hook(brought.body)):
                yield user, need, brought


def _refused(moment: Moment, user: Resource, need: Need) -> Event | None:
    """The first refusal of a user, or of what it owns, for want of an object that is made later in the same step."""
    kind, name = need.object.kind, need.object.name
    words = f'{kind} "{name}" not found', f"no {kind} with name {name} was found"
    refused = None
    for event in moment.events():
        if refused is None and event.effect in ("refused", "said") and any(said in event.message for said in words):
            is_of_user = user.ref in (event.object, owner_of(moment, event.object))
            refused = event if is_of_user else None
        if event.object == need.object and event.effect == "created" and event.actor in MAKERS:
            return refused
    return None


def _finding(moment: Moment, user: Resource, need: Need, brought: Resource, refused: Event) -> Finding:
    who, fails = moment.speaker, refused.actor in MAKERS
    last = "which Helm makes last" if who == "Helm" else f"which {who} makes after it"
    return found(
        RULE,
        moment,
        objects=[user.ref, need.object],
        damage="failed-deploy" if fails else "nuisance",
        message=f"{user.ref} asks for {need.object}, {last}: "
        + (f"{moment.act} fails" if fails else "its pods are refused at first"),
        details=(
            f'The API server says: "{refused.message}"',
            f"Helm's order of kinds does not know {need.object.kind}: such objects come after all others."
            if who == "Helm"
            else f"{who} applies objects in the order in which they stand in the files: {brought.file} comes later.",
            after_failure(moment)
            if fails
            else "The controller tries again, after pauses that grow to minutes; nothing has to be done but wait.",
            "On a cluster that has it already, all goes well: that hides it.",
        ),
        places=[user.place(*need.field), brought.place("metadata", "name")],
        evidence=[refused],
        confirm=f"kubectl get {in_kubectl(need.object)}  # not there yet, on a new cluster"
        if fails
        else f"kubectl describe {in_kubectl(user.ref)}  # its events",
    )


RULE = Rule("ST112", "helm-unknown-kind-installed-last", check)
