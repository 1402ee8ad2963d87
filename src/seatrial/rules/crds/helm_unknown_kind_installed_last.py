"""A pod needs an object of the same release whose kind is not in Helm's kind order, so Helm creates it last.

## What happens
Helm creates regular resources kind by kind, in a fixed order. Kinds that are not in the list come last, sorted by kind
name: custom resources, and some built-in kinds such as RuntimeClass. A pod that names a RuntimeClass of its own release
is rejected, because the RuntimeClass is created later: `pod rejected: RuntimeClass "sandbox" not found`. A bare Pod
fails the install. The pods of a Deployment or a Job are created by a controller, which is rejected and retries: the
release recovers, after warning events.

The second install of the same chart finds the RuntimeClass and succeeds, so the problem shows only on a new cluster.
PriorityClass has been in the list since Helm 3.13. SecurityContextConstraints of OpenShift come last as well, but are
not reported: which one a pod gets depends on RBAC.

kubectl has no kind order: files are applied by name, and a PriorityClass in `priorities.yaml` comes after the
Deployment in `app.yaml`. `kubectl apply -k` sorts by kind, with a list that lacked PriorityClass up to kubectl 1.20.

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
Put the object into a separate release that is installed first; with kubectl, into a file that sorts first. Or make it a
pre-install hook: it then exists before the pods, and neither upgrades nor an uninstall change it again.

## Fix safety
The upgrade that turns a regular resource into a hook deletes it (see release-to-hook-flip): add
`helm.sh/resource-policy: keep` to it one revision earlier.
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


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    reported: set[tuple[object, object]] = set()
    for step, release in enumerate(case.releases):
        moment = Moment(rehearsal, case, step)
        if release is None:
            continue
        by_kubectl = rehearsal.steps[step].action == "apply"
        for user, need, needed in _created_later(release, in_file_order=by_kubectl):
            key = user.ref, need.object
            refused = _refused(moment, user, need)
            if refused is not None and key not in reported:
                reported.add(key)
                yield _finding(moment, user, need, needed, refused)


def _created_later(release: Release, *, in_file_order: bool) -> Iterator[tuple[Resource, Need, Resource]]:
    """Regular resources that need one of an unknown kind, or of any kind if the order is that of the files."""
    for user in release.resources:
        if hooks.is_hook(user.body) and not in_file_order:
            continue
        for need in needs_of(user):
            known = is_known(need.object.kind) and not in_file_order
            needed = None if need.guess or known else release.find(need.object)
            if needed is not None and (in_file_order or not hooks.is_hook(needed.body)):
                yield user, need, needed


def _refused(moment: Moment, user: Resource, need: Need) -> Event | None:
    """The first refusal of a user, or of what it owns, because an object is created later in the same step."""
    refused = None
    for event in moment.events():
        if refused is None and event.refusal is not None and need.object in event.missing and not need.object.namespace:
            is_of_user = user.ref in (event.object, owner_of(moment, event.object))
            refused = event if is_of_user else None
        if event.object == need.object and event.effect == "created" and event.actor in moment.rehearsal.actors:
            return refused
    return None


def _finding(moment: Moment, user: Resource, need: Need, needed: Resource, refused: Event) -> Finding:
    who, fails = moment.speaker, refused.actor in moment.rehearsal.actors
    last = "which Helm creates last" if who == "Helm" else "which comes later"
    return found(
        RULE,
        moment,
        objects=[user.ref, need.object],
        damage="failed-deploy" if fails else "nuisance",
        message=f"{user.ref} needs {need.object}, {last}: "
        + (f"{moment.act} fails" if fails else "its pods are rejected at first"),
        details=(
            f"Helm's kind order does not list {need.object.kind}: unlisted kinds are created after all others."
            if who == "Helm"
            else f"{who} applies objects in file order, and {needed.file} comes later.",
            f'The API server reports: "{refused.message}"',
            after_failure(moment)
            if fails
            else "The controller retries, with pauses that grow to minutes, and succeeds. No action is needed.",
            "It works on a cluster that already has the object, which hides the problem.",
        ),
        places=[user.place(*need.field), needed.place("metadata", "name")],
        evidence=[refused],
        confirm=f"kubectl get {in_kubectl(need.object)}  # does not exist yet on a new cluster"
        if fails
        else f"kubectl describe {in_kubectl(user.ref)}  # its events",
    )


RULE = Rule("ST112", "helm-unknown-kind-installed-last", check)
