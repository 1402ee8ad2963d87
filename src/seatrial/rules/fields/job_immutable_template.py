"""A regular Job of the previous revision still exists and its template changed. It is immutable, so the upgrade fails.

## What happens
The pod template of a Job cannot change, even after the Job has completed. A Job that is a regular resource stays in the
cluster under its name. A new revision with another image, environment, checksum or version label in the template is
rejected with `field is immutable`. Helm still updates the other objects and deletes nothing. With
`ttlSecondsAfterFinished` the Job may already be deleted when the upgrade comes: then Helm recreates it, and it runs
again.

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
Make it a hook (`helm.sh/hook: post-install,post-upgrade`, with `before-hook-creation`): Helm then deletes the old Job
first. Note that hooks run before or after all other objects, not among them. Or let the name change with the template:
`seed-{{ .Release.Revision }}`, `seed-{{ .Values.image.tag }}`. In a Flux Kustomization, where nothing is applied if one
object is rejected, set `kustomize.toolkit.fluxcd.io/force: enabled` on the Job: Flux then deletes and recreates it.

## Fix safety
A hook is not deleted when the release is uninstalled. The upgrade that turns a regular Job into a hook deletes the Job,
which is intended here.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.history import newest_resources
from seatrial.evidence.moment import Moment
from seatrial.helm import hooks
from seatrial.model import lazy_re
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case, Resource
from seatrial.model.resource import Ref, dig
from seatrial.model.timeline import Rehearsal
from seatrial.phrases.immutable import (
    VERSION,
    changes_with_version,
    differences,
    in_cluster,
    refusals,
    refused,
    try_again,
    version_labels,
)
from seatrial.phrases.objects import in_kubectl

TEMPLATE = ("spec", "template")
CHANGING = lazy_re.compile(r"-(?:r(?:ev)?)?\d+$|-(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{5,64}(?:-|$)")
"""A name with the revision of the release, or with a hash: it changes with every revision, or with its content."""


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    reported: set[Ref] = set()
    for refusal in refusals(rehearsal, case, ("Job",)):
        reported.add(refusal.ref)
        moment = Moment(rehearsal, case, refusal.step)
        there = "exists" if moment.ended.next_version else "of the previous revision still exists"
        yield refused(
            RULE,
            rehearsal,
            case,
            refusal,
            message=f"{refusal.ref} {there} and is immutable: {moment.act} fails",
            changed=differences(refusal, ("spec",)),
            way_out=(
                f"Make {refusal.ref} a hook, or let its name change with its template. Once, by hand: kubectl delete "
                f"{in_kubectl(refusal.ref)} and {try_again(rehearsal, refusal)}.",
            ),
            confirm=in_cluster(refusal.ref, ".spec.template.spec.containers[*].image"),
        )
    yield from _next_versions(rehearsal, case, reported)


def _next_versions(rehearsal: Rehearsal, case: Case, reported: set[Ref]) -> Iterator[Finding]:
    """Templates that will change with the next chart version, under the same name."""
    for moment, resource in newest_resources(rehearsal, case):
        if resource.ref.kind != "Job" or resource.ref in reported or not _stays(resource):
            continue
        labels = version_labels(dig(resource.body, *TEMPLATE, "metadata", "labels"))
        if labels and not (VERSION.search(resource.ref.name) or CHANGING.search(resource.ref.name)):
            yield _next_version(moment, resource, labels)


def _stays(resource: Resource) -> bool:
    return not hooks.is_hook(resource.body) and dig(resource.body, "spec", "ttlSecondsAfterFinished") is None


def _next_version(moment: Moment, resource: Resource, labels: list[str]) -> Finding:
    value = dig(resource.body, *TEMPLATE, "metadata", "labels", labels[0])
    return changes_with_version(
        RULE,
        moment,
        resource,
        [(*TEMPLATE, "metadata", "labels", label) for label in labels],
        f"{resource.ref} has {labels[0]} in its template: upgrades to other versions fail while it exists",
        f"Its pods have the label {labels[0]}={value}, which changes with the next chart version. The template of a "
        "Job is immutable, even after it has completed, and the name of the Job stays the same.",
        f"kubectl get {in_kubectl(resource.ref)}  # exists before the upgrade",
    )


RULE = Rule("ST302", "job-immutable-template", check, before=("object-is-invalid",), timeless=True)
