"""An object of the release already exists and belongs to another owner, so Helm refuses to start.

## What happens
For each new object of the manifest, Helm checks whether it already exists. If so, it must have the label
`app.kubernetes.io/managed-by: Helm` and the annotations `meta.helm.sh/release-name` and
`meta.helm.sh/release-namespace` of this release. Objects created by hand, by an operator, by a Job of the chart or by
another release do not, and Helm stops: `invalid ownership metadata`. Nothing is changed and no revision is recorded.
The check comes before all hooks, so no pre-install or pre-upgrade hook can adopt or delete the object.

Two releases of one chart conflict if a name does not contain the release name: always for cluster-scoped objects
(ClusterRoles, webhook configurations, CRDs), otherwise in the same namespace.

## Example
```yaml
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: shop-reader        # the second release of this chart conflicts with the first
```

## Instead
Name objects after the release (`{{ .Release.Name }}-reader`; cluster-scoped ones after the namespace as well). To adopt
an object, label and annotate it first, or deploy once with `--take-ownership`.

## Fix safety
Adoption changes only metadata, but from then on uninstalling this release deletes the object. Never adopt an object
that another release still contains: the two releases would undo each other's changes.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.flux.reconciliations import failed_act, failed_release
from seatrial.evidence.moment import Moment, found, moments
from seatrial.evidence.ownership import Conflict, conflict
from seatrial.evidence.pulumi.programs import is_pulumi
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case
from seatrial.model.resource import Ref
from seatrial.model.timeline import Rehearsal, StepResult
from seatrial.phrases.objects import adoption, in_kubectl
from seatrial.phrases.outcome import helm_says

LOOKS_FIRST = (
    "Helm checks this before it runs any hook, so no hook can adopt or delete the object. Nothing was changed and no "
    "revision was recorded. Retrying fails the same way."
)
OF_PULUMI = (
    "Helm does not adopt it into a Release. Pulumi creates new resources before it deletes old ones: what moves "
    "from a Chart to a Release still exists when "
    "Helm checks. Nothing of the Release is created, and every further up fails the same way.",
    "Adopting them for Helm does not help: at the end of the up Pulumi deletes them as part of the Chart.",
)


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    seen: set[Ref] = set()
    for moment in moments(rehearsal, case):
        met = conflict(moment)
        if met is None or met.resource.ref in seen:
            continue
        seen.add(met.resource.ref)
        yield _finding(moment, met)


def _finding(moment: Moment, met: Conflict) -> Finding:
    ref, ended = met.resource.ref, moment.ended
    name, namespace = met.owner
    whose = f"belongs to release {name} in {namespace}" if name else "already exists and belongs to no release"
    return found(
        RULE,
        moment,
        objects=[ref],
        damage="failed-deploy",
        message=f"{ref} {whose}: {_outcome(moment.rehearsal, ended)}",
        details=(
            helm_says(ended),
            *(OF_PULUMI if is_pulumi(moment.rehearsal) else (LOOKS_FIRST, _two_owners(met, ended))),
        ),
        way_out=_way_out(moment.rehearsal, met, ended),
        places=[met.resource.place("metadata", "name")],
        evidence=[met.made] if met.made else [],
        confirm=f"kubectl get {in_kubectl(ref)} -o jsonpath='{{.metadata.annotations}}'",
    )


def _outcome(rehearsal: Rehearsal, ended: StepResult) -> str:
    if is_pulumi(rehearsal):
        return f"pulumi {ended.action} fails"
    if one := failed_release(ended):
        return f"the {failed_act(one)} of {one.object} fails"
    return f"helm {ended.action} refuses to start"


def _two_owners(met: Conflict, ended: StepResult) -> str:
    if not met.owner[0]:
        return ""
    if one := failed_release(ended):
        return (
            f"Without {failed_act(one)}.disableTakeOwnership Flux adopts existing objects. Then both manage it, and "
            "the first to be uninstalled deletes it."
        )
    return (
        f"Its name does not contain the release name, so a second release ({ended.release}) conflicts with the first. "
        "With --take-ownership both manage it, and the first to be uninstalled deletes it."
    )


def _way_out(rehearsal: Rehearsal, met: Conflict, ended: StepResult) -> Iterator[str]:
    ref = met.resource.ref
    if is_pulumi(rehearsal):
        yield f"Give {ref} another name, or delete the old resource first: pulumi destroy --target."
    elif met.owner[0]:
        yield f"Put the release name into the name of {ref}, or leave it to release {met.owner[0]}."
    elif one := failed_release(ended):
        yield f"Remove {failed_act(one)}.disableTakeOwnership from {one.object}: Flux then adopts {ref}."
    else:
        yield f"Adopt {ref}, which exists:"
        yield from adoption(ref, ended)


RULE = Rule("ST406", "ownership-metadata-conflict", check)
