"""A CRD is a regular resource of the release, so Helm deletes it, and with it every custom resource of its kind.

## What happens
When a CustomResourceDefinition is deleted, the API server deletes all custom resources of its kind, in all namespaces,
no matter who created them. They cannot be orphaned. Helm deletes a CRD in the templates when the release is
uninstalled, and when an upgrade no longer lists it. Moving it from `templates/` to `crds/` is such an upgrade: Helm
deletes the CRD after it has updated everything else, does not read `crds/`, and reports success. Every later upgrade
fails, because the kind is not served.

Helm reads `helm.sh/resource-policy: keep` in two places: on upgrade from the live object, on uninstall from the stored
manifest. So `kubectl annotate` protects a CRD from upgrades, but not from an uninstall.

Flux deletes the CRDs of a Kustomization with `prune: true` when the Kustomization is deleted or no longer contains
them. CRDs in the templates of a HelmRelease's chart are deleted as with Helm.

Pulumi deletes a CRD that the program no longer registers, and all CRDs on `destroy`. In a `helm.v3.Chart` and a
`helm.v4.Chart` the CRDs of `crds/` are ordinary resources, which Helm itself would never delete. `kubectl delete -f`
deletes the CRDs of the folder, and `apply --prune --applyset` those that left it; the older `--prune` ignores CRDs.
Deleting a whole program or folder is usually meant, so it is reported only if custom resources of others are lost.

Whether an uninstall loses data depends on the custom resources that users have created, which a chart does not show.
The finding is a `will` if the trial contains such objects.

## Example
```yaml
# templates/crd.yaml
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: locks.canal.example       # no helm.sh/resource-policy
```

## Instead
```yaml
metadata:
  annotations:
    helm.sh/resource-policy: keep
```
in the template; or put the CRD into `crds/`, which Helm never deletes. In a Flux Kustomization, add
`kustomize.toolkit.fluxcd.io/prune: disabled`; in Pulumi, set `retainOnDelete: true`. To move a CRD out of the templates
of an installed release, add `keep` one revision earlier.

## Fix safety
`keep` only makes the CRD stay behind. A later install under another release name is rejected until the CRD is adopted.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.argocd.syncs import is_argocd
from seatrial.evidence.flux.reconciliations import FLUX, is_flux
from seatrial.evidence.history import GOING, cascade, pruned, release_with
from seatrial.evidence.moment import Moment, found, moments
from seatrial.evidence.unserved import DEFINITION
from seatrial.helm import hooks
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case, Resource
from seatrial.model.resource import Ref, annotations_of
from seatrial.model.timeline import Event, Rehearsal, StepResult
from seatrial.phrases.outcome import first_named

ENDS = ("uninstall", "delete", "destroy")
PRUNE = "kustomize.toolkit.fluxcd.io/prune"
DROPPED = {"up": ": the program no longer registers the CRD", "apply": ": the files drop the CRD"}
ONLY_IN_THE_MANIFEST = (
    "helm.sh/resource-policy: keep that is added with kubectl annotate protects the CRD from upgrades, but not from an "
    "uninstall."
)
KEPT_IN_FLUX = f"Add {PRUNE}: disabled to {{}}: it then stays, even if the Kustomization is deleted."
KEPT_BY = {
    "Pulumi": "Set retainOnDelete: true on {}, which leaves it in the cluster, or protect: true: then Pulumi does not "
    "delete it.",
    "kubectl": "Put {} into a folder that is never deleted or pruned: kubectl has no option to keep it.",
}
Gone = tuple[Event, Resource]
"""The deletion of a CRD, and the CRD as the release has it."""


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    for moment in moments(rehearsal, case):
        if moment.ended.action in ENDS:
            gone = list(_uninstalled(moment))
        else:
            gone = [pair for pair in pruned(moment) if pair[1].ref.kind == DEFINITION]
        finding = _finding(moment, gone) if gone else None
        if finding is not None and (finding.certainty == "will" or _by_helm(gone) or moment.ended.action not in ENDS):
            yield finding
            return


def _uninstalled(moment: Moment) -> Iterator[Gone]:
    """CRDs that are deleted with the release, and that the newest revision does not keep."""
    for event in moment.events() if not is_argocd(moment.rehearsal) else ():
        if event.actor not in moment.rehearsal.actors or event.effect not in GOING or event.object.kind != DEFINITION:
            continue
        written = moment.case.written(len(moment.case.releases) - 1, event.object)
        kept = hooks.RESOURCE_POLICY if event.actor == "helm" else PRUNE
        if written is not None and kept not in annotations_of(written.body):
            yield event, written


def _finding(moment: Moment, gone: list[Gone]) -> Finding:
    ended, new = moment.ended, moment.release
    refs = [event.object for event, _ in gone]
    deleted = _cascades(moment.rehearsal, gone)
    lost = _lost(moment, gone)
    moved = new is not None and any(crd.ref in refs for crd in new.crds)
    evidence = [*(event for event, _ in gone), *(event for event in deleted if event.object in lost)]
    return found(
        RULE,
        moment,
        objects=refs,
        damage="data-loss",
        certainty="will" if lost or moved else "may",
        message=f"{moment.act} deletes {first_named(refs)} and "
        f"{first_named(lost) if lost else 'all its custom resources'}" + _why(gone, ended, moved=moved),
        details=(
            "With a CRD the API server deletes all its custom resources, in all namespaces. They cannot be orphaned.",
            _not_recreated(moment.rehearsal) if moved else "",
            _what_comes(moment),
            "" if lost or moved else "Data is lost only if such custom resources exist.",
            ONLY_IN_THE_MANIFEST if _by_helm(gone) and ended.action in ENDS else "",
        ),
        way_out=_what_keeps(gone, ended),
        places=[
            *(crd.place("metadata", "name") for crd in (new.crds if new else ()) if crd.ref in refs),
            *(written.place("metadata", "name") for _, written in gone),
        ],
        evidence=evidence,
        confirm=f"kubectl get {refs[0].name} -A  # would be deleted",
        removal=ended.role == "remove" and not lost,
    )


def _cascades(rehearsal: Rehearsal, gone: list[Gone]) -> list[Event]:
    return [deletion for event, _ in gone for deletion in cascade(rehearsal, event)]


def _lost(moment: Moment, gone: list[Gone]) -> list[Ref]:
    """Custom resources that are deleted with the CRDs; in an uninstall only those of others."""
    own = release_with(moment.case, moment.index, gone[0][0].object) if moment.ended.action in ENDS else None
    deleted = {deletion.object for deletion in _cascades(moment.rehearsal, gone)}
    if not _by_helm(gone):  # Objects held by a finalizer are reported by uninstall-operator-before-crs.
        deleted = {ref for ref in deleted if moment.live(ref) is None}
    return sorted(ref for ref in deleted if own is None or own.find(ref) is None)


def _why(gone: list[Gone], ended: StepResult, *, moved: bool) -> str:
    if moved:
        return ": the CRD moved to crds/"
    if ended.action not in ENDS:
        return DROPPED.get(ended.action, ": the new revision drops the CRD")
    if _by_helm(gone):
        return ": it has no keep policy"
    return ": its Kustomization prunes" if gone[0][0].actor == FLUX else ""


def _by_helm(gone: list[Gone]) -> bool:
    return gone[0][0].actor == "helm"


def _not_recreated(rehearsal: Rehearsal) -> str:
    if is_flux(rehearsal):
        return (
            "Flux reads crds/ before Helm deletes the CRD and skips it, because it still exists: only the next upgrade "
            "recreates it."
        )
    return "Helm does not read crds/ in an upgrade, so the CRD is not recreated."


def _what_keeps(gone: list[Gone], ended: StepResult) -> Iterator[str]:
    if not _by_helm(gone):
        words = KEPT_IN_FLUX if gone[0][0].actor == FLUX else KEPT_BY.get(ended.by, "")
        yield words.format(gone[0][0].object)


def _what_comes(moment: Moment) -> str:
    """How the step ends, and whether the next upgrade fails."""
    ends = f"{moment.speaker} reports success." if moment.ended.outcome == "ok" else moment.says
    following = moment.rehearsal.steps[moment.index + 1] if moment.index + 1 < len(moment.rehearsal.steps) else None
    if following is None or following.action != "upgrade" or following.outcome == "ok":
        return ends
    return f'{ends} The next upgrade fails: "{following.error.strip()}"'


RULE = Rule("ST109", "crd-in-templates-deleted-on-uninstall", check)
