"""A plain Job whose template changed is still there, and may not be changed: every upgrade fails.

## What happens
The pod template of a Job may never change, not even when the Job has finished. A Job that is an ordinary object of the
release stays in the cluster under its name; the next revision with another image, another environment, a checksum or a
version label in the template is refused with `field is immutable`. Helm changes the other objects all the same and
deletes nothing. With `ttlSecondsAfterFinished` the Job may be gone when the upgrade comes: then Helm makes it anew, and
it runs again.

## Example
```yaml
apiVersion: batch/v1
kind: Job
metadata:
  name: seed                        # the same in every revision
spec:
  template:
    spec:
      containers:
        - image: registry.example/seed:{{ .Chart.AppVersion }}
```

## Instead
Make it a hook (`helm.sh/hook: post-install,post-upgrade`, with `before-hook-creation`): Helm deletes the old one first.
Mind that hooks come before or after the other objects, not among them. Or let the name change with the template:
`seed-{{ .Release.Revision }}`, `seed-{{ .Values.image.tag }}`. In a Kustomization of Flux, where nothing of it is
applied before the API server would take all, `kustomize.toolkit.fluxcd.io/force: enabled` on the Job has it deleted and
made anew.

## Fix safety
A hook is not deleted when the release is uninstalled. A plain Job that becomes a hook is deleted by the upgrade that
makes it one, which is what one wants here.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.history import newest_resources
from seatrial.evidence.moment import Moment, found
from seatrial.helm import hooks
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case, Resource
from seatrial.model.resource import Ref, dig
from seatrial.model.timeline import Rehearsal
from seatrial.phrases.immutable import (
    VERSION,
    differences,
    in_cluster,
    refusals,
    refused,
    try_again,
    version_labels,
)
from seatrial.phrases.objects import in_kubectl

TEMPLATE = ("spec", "template")


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    told: set[Ref] = set()
    for refusal in refusals(rehearsal, case, ("Job",)):
        told.add(refusal.ref)
        act = Moment(rehearsal, case, refusal.step).act
        yield refused(
            RULE,
            rehearsal,
            case,
            refusal,
            message=f"{refusal.ref} is still there from the revision before and may not change: {act} is refused",
            changed=differences(refusal, ("spec",)),
            way_out=f"Way out: kubectl delete {in_kubectl(refusal.ref)} and {try_again(rehearsal, refusal)}.",
            confirm=in_cluster(refusal.ref, ".spec.template.spec.containers[*].image"),
        )
    yield from _waiting(rehearsal, case, told)


def _waiting(rehearsal: Rehearsal, case: Case, told: set[Ref]) -> Iterator[Finding]:
    """Templates that will change with the next version of the chart, under a name that will not."""
    for moment, resource in newest_resources(rehearsal, case):
        if resource.ref.kind != "Job" or resource.ref in told or not _stays(resource):
            continue
        labels = version_labels(dig(resource.body, *TEMPLATE, "metadata", "labels"))
        if labels and not VERSION.search(resource.ref.name):
            yield _next_version(moment, resource, labels)


def _stays(resource: Resource) -> bool:
    return not hooks.is_hook(resource.body) and dig(resource.body, "spec", "ttlSecondsAfterFinished") is None


def _next_version(moment: Moment, resource: Resource, labels: list[str]) -> Finding:
    value = dig(resource.body, *TEMPLATE, "metadata", "labels", labels[0])
    return found(
        RULE,
        moment,
        objects=[resource.ref],
        damage="failed-deploy",
        certainty="may",
        message=f"the template of {resource.ref} contains {', '.join(labels)}: no other version of the chart can be "
        "upgraded to while the Job is there",
        details=(
            f"Its pods are labelled {labels[0]}={value}, which the next version will write otherwise, and the template "
            "of a Job may never change, finished or not. Its name stays the same.",
        ),
        places=[resource.place(*TEMPLATE, "metadata", "labels", label) for label in labels],
        confirm=f"kubectl get {in_kubectl(resource.ref)}  # still there before the upgrade",
    )


RULE = Rule("ST302", "job-immutable-template", check)
