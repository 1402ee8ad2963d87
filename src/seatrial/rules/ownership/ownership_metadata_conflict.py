"""An object of the release is in the cluster already and belongs to someone else, so Helm refuses to begin.

## What happens
For each object that is new in the manifest, Helm asks whether one of that name is there. If so it must carry the
label `app.kubernetes.io/managed-by: Helm` and the annotations `meta.helm.sh/release-name` and
`meta.helm.sh/release-namespace` of this very release. Objects that were made by hand, by an operator, by a Job of the
chart or by another release do not, and Helm stops: `invalid ownership metadata`. Nothing was changed and no revision
is recorded. The check comes before all hooks, so no pre-install or pre-upgrade hook can adopt the object or take it
away.

Two releases of one chart meet here when a name in it does not contain the name of the release: always for objects
that live outside namespaces (ClusterRoles, webhook configurations, CRDs), otherwise in the same namespace.

## Example
```yaml
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: shop-reader        # the second release of this chart finds the first one's
```

## Instead
Name objects after the release (`{{ .Release.Name }}-reader`; cluster-wide ones after the namespace as well). To take
an object over, label and annotate it first, or deploy once with `--take-ownership`.

## Fix safety
Taking over changes only metadata, but from then on this release deletes the object when it goes. Never take over what
another release still lists: they undo each other's changes.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.flux.reconciliations import failed_act, failed_release
from seatrial.evidence.moment import Moment, found, moments
from seatrial.evidence.ownership import Conflict, conflict, is_left_over
from seatrial.evidence.pulumi.programs import is_pulumi
from seatrial.evidence.unserved import came_from_crds
from seatrial.helm import hooks
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case
from seatrial.model.resource import Ref
from seatrial.model.timeline import Rehearsal, StepResult
from seatrial.phrases.objects import adoption, in_kubectl
from seatrial.phrases.outcome import helm_says

LOOKS_FIRST = (
    "Helm looks before it runs any hook: no hook can adopt the object or take it away. Nothing was changed and no "
    "revision was recorded; every further try fails alike."
)
OF_PULUMI = (
    "Pulumi makes what is new before it deletes what is old: what moves from a Chart to a Release is still there when "
    "Helm looks. Of the Release nothing is made, and every further up fails alike.",
    "Give the objects other names, or delete the old resources first: pulumi destroy --target. To mark them as Helm's "
    "is no way out: at the end of the up Pulumi deletes them as those of the Chart.",
)


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    seen: set[Ref] = set()
    for moment in moments(rehearsal, case):
        met = conflict(moment)
        if met is None or met.resource.ref in seen or _is_told_elsewhere(moment, met):
            continue
        seen.add(met.resource.ref)
        yield _finding(moment, met)


def _is_told_elsewhere(moment: Moment, met: Conflict) -> bool:
    """By hook-to-release-flip, release-namespace-inside-chart, and rules of what moved or was left over."""
    ref, old = met.resource.ref, moment.before
    was = old.find(ref) if old else None
    moved = (was is not None and hooks.is_hook(was.body)) or came_from_crds(moment, ref) is not None
    return moved or ref == Ref("Namespace", "", moment.ended.namespace) or is_left_over(moment, met)


def _finding(moment: Moment, met: Conflict) -> Finding:
    ref, ended = met.resource.ref, moment.ended
    name, namespace = met.owner
    whose = f"belongs to the release {name} in {namespace}" if name else "is there already and belongs to no release"
    return found(
        RULE,
        moment,
        objects=[ref],
        damage="failed-deploy",
        message=f"{ref} {whose}: {_outcome(moment.rehearsal, ended)}",
        details=(
            helm_says(ended),
            *(OF_PULUMI if is_pulumi(moment.rehearsal) else (LOOKS_FIRST, _way_out(met, ended))),
        ),
        places=[met.resource.place("metadata", "name")],
        evidence=[met.made] if met.made else [],
        confirm=f"kubectl get {in_kubectl(ref)} -o jsonpath='{{.metadata.annotations}}'",
    )


def _outcome(rehearsal: Rehearsal, ended: StepResult) -> str:
    if is_pulumi(rehearsal):
        return f"pulumi {ended.action} fails, since Helm takes over in a Release nothing that it does not own"
    if one := failed_release(ended):
        return f"Helm refuses to begin the {failed_act(one)} of {one.object}"
    return f"helm {ended.action} refuses to begin"


def _way_out(met: Conflict, ended: StepResult) -> str:
    if one := failed_release(ended):
        both = "" if not met.owner[0] else "; then both write it, and the first to be uninstalled deletes it"
        return f"Without {failed_act(one)}.disableTakeOwnership Flux adopts whatever it finds{both}."
    if not met.owner[0]:
        return adoption(met.resource.ref, ended)
    return (
        f"Its name does not contain that of the release, so that a second one ({ended.release}) meets what the first "
        "one made. --take-ownership would let both write it, and the first to be uninstalled delete it."
    )


RULE = Rule("ST406", "ownership-metadata-conflict", check)
