"""An object of the release needs another that is not in the cluster, or that exists only in another namespace.

## What happens
A Pod that refers to a missing Secret or ConfigMap is created, and its containers do not start:
`CreateContainerConfigError` or `FailedMount`. Without `--wait` Helm reports success; clients that wait time out. A
binding to a missing Role or ServiceAccount grants nothing, and nothing reports it. Flux waits forever for a missing
object in `dependsOn`. With Argo CD the waves after that of the pod are never applied.

A pod finds Secrets and ConfigMaps only in its own namespace: one with the same name in another namespace does not help.

Prerequisites are assumed to exist. This finding is reported if you exclude one (`--absent`, `--assume-only`). It is a
*may* if the input has an object of the same kind and name only in another namespace, so that one of the two namespaces
is probably wrong; or if an option (`--skip-crds`, `skipCrds: true`, `crds: Skip`) skips a CRD in `crds/` whose kind the
chart uses. A StorageClass that a PVC names and that the input does not contain is reported as well (*may*).

## Example
```yaml
kind: Secret
metadata: {name: database, namespace: databases}
---
kind: Deployment
metadata: {name: shop, namespace: shop}
spec:
  template:
    spec:
      containers: [{name: shop, envFrom: [{secretRef: {name: database}}]}]     # resolved in namespace shop
```

## Instead
Create the object in the namespace of its user. If another tool copies it there, pass it with `--assume`.

## Fix safety
A copy of a Secret does not follow changes of the original.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.moment import Moment, found, moments
from seatrial.graph import Edge, edges
from seatrial.model.finding import Damage, Finding, Rule
from seatrial.model.release import Case, Resource
from seatrial.model.resource import Body, Ref, annotations_of, dig, labels_of
from seatrial.model.timeline import Rehearsal
from seatrial.phrases.held_up import held_up
from seatrial.phrases.objects import in_kubectl
from seatrial.phrases.outcome import named

BLOCKS = ("admit", "schedule", "start", "ready")
"""Stages at which a missing object stops its user."""
COPIES = ("reflect", "replicat", "kubed")
"""In labels and annotations of objects that a controller copies into other namespaces."""


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    absent = {one.ref for one in case.absent if one.ref is not None}
    assumed = {one.ref for one in case.assumed if one.ref is not None and one.ref.namespace and not one.operator}
    reported: set[Ref] = set()
    for moment in moments(rehearsal, case):
        needs: dict[Ref, list[Edge]] = {}
        for edge in edges(moment.release.resources if moment.release else ()):
            if edge.need.object not in reported and not edge.need.optional and not edge.need.guess:
                needs.setdefault(edge.need.object, []).append(edge)
        for ref, users in needs.items():
            if ref in absent and moment.live(ref) is None:
                reported.add(ref)
                yield _absent(moment, ref, users)
            elif ref in assumed and (other := _elsewhere(moment, ref)):
                reported.add(ref)
                yield _near_miss(moment, ref, other, users)
            elif ref.kind == "StorageClass" and case.is_assumed(ref):
                reported.add(ref)
                yield _unknown_class(moment, ref, users)
        for crd in moment.release.skipped_crds if moment.release else ():
            users_of_kind = list(_of_kind(moment, crd))
            if users_of_kind and case.is_assumed(crd.ref) and crd.ref not in reported:
                reported.add(crd.ref)
                yield _skipped(moment, crd, users_of_kind)


def _absent(moment: Moment, ref: Ref, users: list[Edge]) -> Finding:
    own = users[0].user
    said = next((event for event in moment.events() if ref in event.missing and event.effect == "said"), None)
    return found(
        RULE,
        moment,
        objects=[own.ref, ref],
        damage=_damage(users),
        message=f"{own.ref} needs {ref}, which is not in the cluster",
        details=(
            *_others(users),
            *held_up(moment, ref),
            "--absent, --assume-only, the trial file or a snapshot excludes it, so it is not assumed.",
        ),
        places=[own.place(*users[0].need.field)],
        evidence=[said] if said else [],
        confirm=f"kubectl get {in_kubectl(ref)}",
    )


def _near_miss(moment: Moment, ref: Ref, other: Ref, users: list[Edge]) -> Finding:
    own = users[0].user
    written = moment.case.written(moment.index, other)
    return found(
        RULE,
        moment,
        objects=[own.ref, ref],
        damage=_damage(users),
        certainty="may",
        message=f"{own.ref} needs {ref}; the input has it only in namespace {other.namespace}",
        details=(
            f"{own.ref} looks in namespace {ref.namespace} only.",
            *_others(users),
            f"{ref} is assumed to exist. --absent {ref} shows what happens without it.",
        ),
        places=[own.place(*users[0].need.field), *([written.place("metadata", "namespace")] if written else ())],
        confirm=f"kubectl get {in_kubectl(ref)}",
    )


def _unknown_class(moment: Moment, ref: Ref, users: list[Edge]) -> Finding:
    own = users[0].user
    return found(
        RULE,
        moment,
        objects=[own.ref, ref],
        damage="failed-deploy",
        certainty="may",
        message=f"{own.ref} uses {ref}, which the input does not contain; without it the PVC stays Pending",
        details=(
            *_others(users),
            "It is assumed to exist and to bind at once. Pass yours with --assume, or under storageClasses in a trial "
            "file.",
        ),
        places=[own.place(*users[0].need.field)],
        confirm=f"kubectl get storageclass {ref.name}",
    )


def _skipped(moment: Moment, crd: Resource, users: list[Resource]) -> Finding:
    own, others = users[0], [resource.ref for resource in users[1:]]
    return found(
        RULE,
        moment,
        objects=[own.ref, crd.ref],
        damage="failed-deploy",
        certainty="may",
        message=f"{own.ref} needs {crd.ref}, which is in crds/ of its chart and is skipped",
        details=(
            f"Also affected: {named(others)}." if others else "",
            f"No other part of the input contains the CRD. It is assumed to exist. --absent {crd.ref} shows what "
            "happens without it.",
        ),
        places=[own.place("apiVersion"), crd.place("metadata", "name")],
        confirm=f"kubectl get crd {crd.ref.name}",
    )


def _of_kind(moment: Moment, crd: Resource) -> Iterator[Resource]:
    """The custom resources of a CRD."""
    group, kind = dig(crd.body, "spec", "group"), dig(crd.body, "spec", "names", "kind")
    for resource in moment.release.resources if moment.release else ():
        if (resource.ref.group, resource.ref.kind) == (group, kind):
            yield resource


def _elsewhere(moment: Moment, ref: Ref) -> Ref | None:
    """An object of the same kind and name in another namespace of the input, if no controller copies it."""
    for resource in moment.case.all_resources():
        other = resource.ref
        same = (other.kind, other.group, other.name) == (ref.kind, ref.group, ref.name)
        if same and other.namespace != ref.namespace and not _is_copied(resource.body):
            return other
    return None


def _is_copied(body: Body) -> bool:
    return any(word in key for key in (*annotations_of(body), *labels_of(body)) for word in COPIES)


def _damage(users: list[Edge]) -> Damage:
    return "failed-deploy" if any(edge.need.stage in BLOCKS for edge in users) else "nuisance"


def _others(users: list[Edge]) -> Iterator[str]:
    others = list(dict.fromkeys(edge.user.ref for edge in users[1:] if edge.user.ref != users[0].user.ref))
    if others:
        yield f"Also needed by {named(others)}."


RULE = Rule("ST117", "needed-object-missing", check, before=("workload-crash-loops",))
