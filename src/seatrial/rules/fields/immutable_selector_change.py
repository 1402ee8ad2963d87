"""A workload's selector changed. It is immutable, so every upgrade fails.

## What happens
`spec.selector` of a Deployment, DaemonSet, ReplicaSet or StatefulSet cannot change. If a chart adds a label to its
selector labels, renames one, or derives one from the chart version, every upgrade of an installed release fails with
`field is immutable`. Helm still updates the other objects and deletes nothing: the cluster has a mix of both revisions,
the new revision is `failed`, and the old one stays `deployed`.

`--force` does not delete and recreate: it replaces the object, which is rejected the same way.

A selector with `helm.sh/chart` or `app.kubernetes.io/version` will change with the next chart version. If both
revisions have the same version, the finding is *may*.

## Example
```yaml
spec:
  selector:
    matchLabels:
      app: web
      helm.sh/chart: web-1.2.3      # changes with every version
```

## Instead
Select by labels that never change: name and instance. Put all other labels on the pods only. If the selector must
change, give the workload a new name, or delete it before the upgrade and accept the downtime. With
`kubectl delete --cascade=orphan` its pods keep running, but the new workload does not select them and they must be
deleted by hand afterwards.

## Fix safety
Removing a label from the selector changes the selector too: it breaks upgrades of releases that have it.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.history import newest_resources
from seatrial.evidence.moment import Moment
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case, Resource
from seatrial.model.resource import Ref, dig
from seatrial.model.timeline import Rehearsal
from seatrial.phrases.immutable import (
    RejectedChange,
    changes_with_version,
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
    reported: set[Ref] = set()
    for refusal in refusals(rehearsal, case, KINDS):
        changed = differences(refusal, SELECTOR)
        if not changed and not _names_selector(refusal):
            continue
        reported.add(refusal.ref)
        moment, selects = Moment(rehearsal, case, refusal.step), _selects_old_pods(refusal)
        yield refused(
            RULE,
            rehearsal,
            case,
            refusal,
            message=f"the selector of {refusal.ref} changed, which is immutable: {moment.act} fails",
            changed=changed,
            way_out=(
                f"Keep the old selector; or run kubectl delete {in_kubectl(refusal.ref)} and "
                f"{try_again(rehearsal, refusal)}, which stops its pods. With --cascade=orphan they keep running, "
                f"{'and the new one adopts them' if selects else 'but the new one does not select them'}.",
            ),
            confirm=in_cluster(refusal.ref, ".spec.selector"),
        )
    yield from _next_versions(rehearsal, case, reported)


def _names_selector(refusal: RejectedChange) -> bool:
    causes = refusal.event.refusal.causes if refusal.event.refusal else ()
    return any(cause.path[:2] == SELECTOR for cause in causes)


def _selects_old_pods(refusal: RejectedChange) -> bool:
    """Whether the new selector also selects the existing pods."""
    if refusal.written is None or refusal.was is None:
        return False
    labels = dig(refusal.was.body, "spec", "template", "metadata", "labels") or {}
    wanted = dig(refusal.written.body, *SELECTOR, "matchLabels") or {}
    return bool(wanted.items() <= labels.items())


def _next_versions(rehearsal: Rehearsal, case: Case, reported: set[Ref]) -> Iterator[Finding]:
    """Selectors that will change with the next chart version."""
    for moment, resource in newest_resources(rehearsal, case):
        labels = version_labels(dig(resource.body, *SELECTOR, "matchLabels"))
        if resource.ref.kind in KINDS and labels and resource.ref not in reported:
            yield _next_version(moment, resource, labels)


def _next_version(moment: Moment, resource: Resource, labels: list[str]) -> Finding:
    value = dig(resource.body, *SELECTOR, "matchLabels", labels[0])
    return changes_with_version(
        RULE,
        moment,
        resource,
        [(*SELECTOR, "matchLabels", label) for label in labels],
        f"the selector of {resource.ref} contains {', '.join(labels)}, so upgrades to other chart versions fail",
        f"It selects {labels[0]}={value}, which changes with the next chart version. spec.selector is immutable.",
        in_cluster(resource.ref, ".spec.selector"),
    )


RULE = Rule("ST301", "immutable-selector-change", check, before=("object-is-invalid",), timeless=True)
