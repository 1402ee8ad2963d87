"""An immutable field of a StatefulSet changed, most often a label in its volumeClaimTemplates, so the upgrade fails.

## What happens
Only replicas, the pod template, the update strategy and a few other fields of a StatefulSet may change. Its
`volumeClaimTemplates`, `serviceName` and `podManagementPolicy` may not: neither the size nor the storage class of a
PVC, nor its labels. Charts that put all their labels on everything write `helm.sh/chart` into the volumeClaimTemplates
and break with every version. The API server does not report which field it was. Helm still updates the other objects
and deletes nothing.

A volumeClaimTemplate with the label `helm.sh/chart` or `app.kubernetes.io/version` will change with the next chart
version. If both revisions have the same version, the finding is *may*.

## Example
```yaml
volumeClaimTemplates:
  - metadata:
      name: data
      labels:
        helm.sh/chart: db-1.2.3     # changes with every version
```

## Instead
Give volumeClaimTemplates no labels, or those of the selector. If the template must change, delete the StatefulSet but
keep its pods and PVCs: `kubectl delete statefulset db --cascade=orphan`, then upgrade. The new StatefulSet adopts the
pods. Existing PVCs do not change (resize them by hand).

## Fix safety
Removing the label changes the template too: releases that have it need the orphan delete once. Never delete without
`--cascade=orphan` if the pods must keep running.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.history import newest_resources
from seatrial.evidence.moment import Moment
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case, Resource
from seatrial.model.resource import Ref, dig, listed
from seatrial.model.timeline import Rehearsal
from seatrial.phrases.immutable import (
    Path,
    changes_with_version,
    differences,
    in_cluster,
    refusals,
    refused,
    try_again,
    version_labels,
)
from seatrial.phrases.objects import in_kubectl

# From ValidateStatefulSetUpdate in pkg/apis/apps/validation of Kubernetes 1.34.
CHANGEABLE = (
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
)
CLAIMS = ("spec", "volumeClaimTemplates")


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    reported: set[Ref] = set()
    for refusal in refusals(rehearsal, case, ("StatefulSet",)):
        changed = [d for d in differences(refusal, ("spec",)) if d.path[1:2] not in [(f,) for f in CHANGEABLE]]
        reported.add(refusal.ref)
        if any(difference.path[:2] == ("spec", "selector") for difference in changed):
            continue  # immutable-selector-change reports it.
        yield refused(
            RULE,
            rehearsal,
            case,
            refusal,
            message=f"{refusal.ref} changed immutable fields: {Moment(rehearsal, case, refusal.step).act} fails",
            changed=changed,
            way_out=(
                f"Run kubectl delete {in_kubectl(refusal.ref)} --cascade=orphan and {try_again(rehearsal, refusal)}. "
                "Its pods and PVCs stay, and the new StatefulSet adopts them.",
            ),
            confirm=in_cluster(refusal.ref, f".{'.'.join(map(str, changed[0].path[:2]))}" if changed else ".spec"),
        )
    yield from _next_versions(rehearsal, case, reported)


def _next_versions(rehearsal: Rehearsal, case: Case, reported: set[Ref]) -> Iterator[Finding]:
    """volumeClaimTemplates that will change with the next chart version."""
    for moment, resource in newest_resources(rehearsal, case):
        paths = list(_versioned(resource)) if resource.ref.kind == "StatefulSet" else []
        if paths and resource.ref not in reported:
            yield _next_version(moment, resource, paths)


def _versioned(resource: Resource) -> Iterator[Path]:
    for index, claim in enumerate(listed(resource.body, *CLAIMS)):
        for label in version_labels(dig(claim, "metadata", "labels")):
            yield (*CLAIMS, index, "metadata", "labels", label)


def _next_version(moment: Moment, resource: Resource, paths: list[Path]) -> Finding:
    labels = ", ".join(sorted({str(path[-1]) for path in paths}))
    return changes_with_version(
        RULE,
        moment,
        resource,
        paths,
        f"volumeClaimTemplates of {resource.ref} have the label {labels}: upgrades fail",
        f"The label is {paths[0][-1]}={dig(resource.body, *paths[0])}, which changes with the next chart version. "
        "volumeClaimTemplates are immutable, including their labels.",
        in_cluster(resource.ref, ".spec.volumeClaimTemplates[*].metadata.labels"),
    )


RULE = Rule("ST303", "statefulset-immutable-field", check, before=("object-is-invalid",), timeless=True)
