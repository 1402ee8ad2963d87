"""The selector of a workload changed, which the API server never allows: every upgrade fails.

## What happens
`spec.selector` of a Deployment, DaemonSet, ReplicaSet or StatefulSet is set once. A label that was added to the
selector labels of a chart, renamed, or taken from the chart's version makes every upgrade of an installed release fail
with `field is immutable`. Helm changes the other objects all the same and deletes nothing: the release is half of each
revision, the new revision is `failed`, the old one stays `deployed`.

`--force` does not mean delete and create: it replaces the object, which is refused alike.

A selector with `helm.sh/chart` or `app.kubernetes.io/version` in it is such a change waiting for the next version of
the chart. Where both revisions have the same version it is a `may`.

## Example
```yaml
spec:
  selector:
    matchLabels:
      app: web
      helm.sh/chart: web-1.2.3      # changes with every version
```

## Instead
Select by labels that never change: the name and the instance. Put the others on the pods only. To change a selector
after all, give the workload a new name, or delete it before the upgrade and accept the gap; with
`kubectl delete --cascade=orphan` its pods go on running, but the new workload does not know them and they must be
deleted by hand afterwards.

## Fix safety
Taking a label out of the selector is itself a change of the selector: it breaks the releases that have it.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.history import newest_resources
from seatrial.evidence.moment import Moment, found
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case, Resource
from seatrial.model.resource import Ref, dig
from seatrial.model.timeline import Rehearsal
from seatrial.phrases.immutable import (
    Refusal,
    differences,
    in_cluster,
    refusals,
    refused,
    try_again,
    version_labels,
)
from seatrial.phrases.objects import in_kubectl

KINDS = ("Deployment", "DaemonSet", "ReplicaSet", "StatefulSet")
SELECTOR = ("spec", "selector")


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    told: set[Ref] = set()
    for refusal in refusals(rehearsal, case, KINDS):
        changed = differences(refusal, SELECTOR)
        if not changed and "spec.selector" not in refusal.event.message:
            continue
        told.add(refusal.ref)
        yield refused(
            RULE,
            rehearsal,
            case,
            refusal,
            message=f"the selector of {refusal.ref} changed: {Moment(rehearsal, case, refusal.step).act} is refused",
            changed=changed,
            way_out=f"Way out: kubectl delete {in_kubectl(refusal.ref)} and {try_again(rehearsal, refusal)}, which "
            f"stops its pods; with --cascade=orphan they go on{', and' if _selects_old_pods(refusal) else ', but'} the "
            f"new one {'takes them over' if _selects_old_pods(refusal) else 'does not select them'}.",
            confirm=in_cluster(refusal.ref, ".spec.selector"),
        )
    yield from _waiting(rehearsal, case, told)


def _selects_old_pods(refusal: Refusal) -> bool:
    """Whether the new selector, too, selects the pods that are there."""
    if refusal.written is None or refusal.was is None:
        return False
    labels = dig(refusal.was.body, "spec", "template", "metadata", "labels") or {}
    wanted = dig(refusal.written.body, *SELECTOR, "matchLabels") or {}
    return bool(wanted.items() <= labels.items())


def _waiting(rehearsal: Rehearsal, case: Case, told: set[Ref]) -> Iterator[Finding]:
    """Selectors that will change with the next version of the chart."""
    for moment, resource in newest_resources(rehearsal, case):
        labels = version_labels(dig(resource.body, *SELECTOR, "matchLabels"))
        if resource.ref.kind in KINDS and labels and resource.ref not in told:
            yield _next_version(moment, resource, labels)


def _next_version(moment: Moment, resource: Resource, labels: list[str]) -> Finding:
    value = dig(resource.body, *SELECTOR, "matchLabels", labels[0])
    return found(
        RULE,
        moment,
        objects=[resource.ref],
        damage="failed-deploy",
        certainty="may",
        message=f"the selector of {resource.ref} contains {', '.join(labels)}: no other version of the chart can be "
        "upgraded to",
        details=(
            f"It selects {labels[0]}={value}, which the next version will write otherwise, and spec.selector may never "
            "change. It happens when that label does.",
        ),
        places=[resource.place(*SELECTOR, "matchLabels", label) for label in labels],
        confirm=in_cluster(resource.ref, ".spec.selector"),
    )


RULE = Rule("ST301", "immutable-selector-change", check)
