"""A StatefulSet changed in a field that may not change, most often a label of its claim templates: the upgrade fails.

## What happens
Of a StatefulSet only the replicas, the pod template, the update strategy and a few more may change. Its claim
templates, `serviceName` and `podManagementPolicy` may not: not the size or the class of a claim, and not its labels
either. Charts that put all their labels everywhere write `helm.sh/chart` into the claim templates, and break with every
version. The API server does not say which field it was. Helm changes the other objects all the same, and deletes none.

A claim template with `helm.sh/chart` or `app.kubernetes.io/version` among its labels is such a change waiting for the
next version of the chart: where both revisions have the same version it is a `may`.

## Example
```yaml
volumeClaimTemplates:
  - metadata:
      name: data
      labels:
        helm.sh/chart: db-1.2.3     # changes with every version
```

## Instead
Give claim templates no labels, or those of the selector. To change the template all the same, take the StatefulSet away
and leave its pods and claims: `kubectl delete statefulset db --cascade=orphan`, then upgrade. The new one adopts the
pods; claims that are there stay as they are (resize them by hand).

## Fix safety
Removing the label is itself such a change: releases that have it need the orphan delete once. Never delete without
`--cascade=orphan` where the pods must go on.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.history import newest_resources
from seatrial.evidence.moment import Moment, found
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case, Resource
from seatrial.model.resource import Ref, dig, listed
from seatrial.model.timeline import Rehearsal
from seatrial.phrases.immutable import (
    Path,
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
    told: set[Ref] = set()
    for refusal in refusals(rehearsal, case, ("StatefulSet",)):
        changed = [d for d in differences(refusal, ("spec",)) if d.path[1:2] not in [(f,) for f in CHANGEABLE]]
        told.add(refusal.ref)
        if any(difference.path[:2] == ("spec", "selector") for difference in changed):
            continue  # immutable-selector-change says it better.
        yield refused(
            RULE,
            rehearsal,
            case,
            refusal,
            message=f"{refusal.ref} changed in what may not change: "
            f"{Moment(rehearsal, case, refusal.step).act} is refused",
            changed=changed,
            way_out=f"Way out: kubectl delete {in_kubectl(refusal.ref)} --cascade=orphan and "
            f"{try_again(rehearsal, refusal)}: pods and claims stay, and the new one takes them over.",
            confirm=in_cluster(refusal.ref, f".{'.'.join(map(str, changed[0].path[:2]))}" if changed else ".spec"),
        )
    yield from _waiting(rehearsal, case, told)


def _waiting(rehearsal: Rehearsal, case: Case, told: set[Ref]) -> Iterator[Finding]:
    """Claim templates that will change with the next version of the chart."""
    for moment, resource in newest_resources(rehearsal, case):
        paths = list(_versioned(resource)) if resource.ref.kind == "StatefulSet" else []
        if paths and resource.ref not in told:
            yield _next_version(moment, resource, paths)


def _versioned(resource: Resource) -> Iterator[Path]:
    for index, claim in enumerate(listed(resource.body, *CLAIMS)):
        for label in version_labels(dig(claim, "metadata", "labels")):
            yield (*CLAIMS, index, "metadata", "labels", label)


def _next_version(moment: Moment, resource: Resource, paths: list[Path]) -> Finding:
    labels = ", ".join(sorted({str(path[-1]) for path in paths}))
    return found(
        RULE,
        moment,
        objects=[resource.ref],
        damage="failed-deploy",
        certainty="may",
        message=f"the claim templates of {resource.ref} are labelled {labels}: no other version of the chart can be "
        "upgraded to",
        details=(
            f"The label is {paths[0][-1]}={dig(resource.body, *paths[0])}, which the next version will write "
            "otherwise, and claim templates may never change, not even in their labels.",
        ),
        places=[resource.place(*path) for path in paths],
        confirm=in_cluster(resource.ref, ".spec.volumeClaimTemplates[*].metadata.labels"),
    )


RULE = Rule("ST303", "statefulset-immutable-field", check)
