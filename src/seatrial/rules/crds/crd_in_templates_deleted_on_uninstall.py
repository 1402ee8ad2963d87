"""A definition is an ordinary object of the release, so Helm deletes it, and with it every object of its kind.

## What happens
When a CustomResourceDefinition is deleted, the API server deletes all objects of its kind, in all namespaces, whoever
made them; there is no orphaning. Helm deletes a definition that is among the templates when the release is uninstalled,
and when an upgrade no longer lists it. Moving it from `templates/` to `crds/` is such an upgrade: Helm deletes it after
it has updated everything else, does not read `crds/`, and reports success; every further upgrade then fails because
nobody serves the kind.

Helm reads `helm.sh/resource-policy: keep` at two places. For an upgrade it counts on the object in the cluster, for an
uninstall in the manifest that Helm has stored: `kubectl annotate` protects from the one and not from the other.

Flux deletes the definitions of a Kustomization that prunes (`prune: true`) when the Kustomization is deleted, or no
longer holds them; what the chart of a HelmRelease has among its templates goes as with Helm.

Pulumi deletes a definition that a program no longer registers, and with `destroy`; in a `helm.v3.Chart` and a
`helm.v4.Chart` those of `crds/` are resources like all others, which Helm itself would never delete. `kubectl delete
-f` deletes those of the folder, and so does `apply --prune --applyset` with what left it; the older `--prune` knows no
definitions. All of a program or a folder going is what was asked for, so this is told only where objects of others
were seen to go along.

That anything is lost by an uninstall depends on what users have made meanwhile, which no chart tells. It is a `will`
where the trial holds such objects.

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
in the template; or the definition in `crds/`, which Helm never deletes. In a Kustomization of Flux it is
`kustomize.toolkit.fluxcd.io/prune: disabled`; to Pulumi say `retainOnDelete: true`. To move one out of the templates of
a release that is installed, give it `keep` one revision before.

## Fix safety
`keep` changes nothing but that the definition stays behind. A later install under another release name is refused until
it is adopted.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.flux.reconciliations import is_flux
from seatrial.evidence.history import GOING, cascade, pruned, release_with
from seatrial.evidence.moment import Moment, found, moments
from seatrial.evidence.unserved import DEFINITION
from seatrial.helm import hooks
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case, Resource
from seatrial.model.resource import Ref, annotations_of
from seatrial.model.timeline import Event, Rehearsal, StepResult
from seatrial.phrases.outcome import named

ENDS = ("uninstall", "delete", "destroy")
ENGINES = ("helm", "flux", "kubectl", "pulumi")
PRUNE = "kustomize.toolkit.fluxcd.io/prune"
DROPPED = {"up": ", which the program no longer registers", "apply": ", which the files no longer hold"}
WHY = {"helm": " because it is a template without keep", "flux": " because its Kustomization prunes"}
KEPT_BY = {
    "flux": f"{PRUNE}: disabled on the definition keeps it, whatever becomes of the Kustomization.",
    "pulumi": "retainOnDelete: true on the definition leaves it in the cluster; protect: true refuses to delete it.",
    "kubectl": "kubectl asks nobody: keep definitions in a folder that nothing is deleted by.",
}
Gone = tuple[Event, Resource]
"""A deletion of a definition, and what had been written of it."""


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
    """Definitions that are deleted with the release, and that the newest revision does not keep."""
    for event in moment.events():
        if event.actor not in ENGINES or event.effect not in GOING or event.object.kind != DEFINITION:
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
        message=f"{moment.act} deletes {named(refs)}{_why(gone, ended, moved=moved)}, and with it "
        + (named(lost) if lost else "every object of its kind that anybody has made"),
        details=(
            "The API server deletes all objects of a kind with its definition, in all namespaces; they cannot be left "
            "behind.",
            _not_brought_back(moment.rehearsal) if moved else "",
            _what_comes(moment),
            "" if lost or moved else "Whether there are such objects decides whether anything is lost.",
            _what_keeps(gone, ended),
        ),
        places=[
            *(crd.place("metadata", "name") for crd in (new.crds if new else ()) if crd.ref in refs),
            *(written.place("metadata", "name") for _, written in gone),
        ],
        evidence=evidence,
        confirm=f"kubectl get {refs[0].name} -A  # what would go",
    )


def _cascades(rehearsal: Rehearsal, gone: list[Gone]) -> list[Event]:
    return [deletion for event, _ in gone for deletion in cascade(rehearsal, event)]


def _lost(moment: Moment, gone: list[Gone]) -> list[Ref]:
    """What goes with the definitions and was not to go: in an uninstall, what is not of the release."""
    own = release_with(moment.case, moment.index, gone[0][0].object) if moment.ended.action in ENDS else None
    went = {deletion.object for deletion in _cascades(moment.rehearsal, gone)}
    if not _by_helm(gone):  # What a finalizer holds is told by uninstall-operator-before-crs.
        went = {ref for ref in went if moment.live(ref) is None}
    return sorted(ref for ref in went if own is None or own.find(ref) is None)


def _why(gone: list[Gone], ended: StepResult, *, moved: bool) -> str:
    if moved:
        return ", which moved from the templates to crds/"
    if ended.action not in ENDS:
        return DROPPED.get(ended.action, ", which the new revision drops")
    return WHY.get(gone[0][0].actor, "")


def _by_helm(gone: list[Gone]) -> bool:
    return gone[0][0].actor == "helm"


def _not_brought_back(rehearsal: Rehearsal) -> str:
    if is_flux(rehearsal):
        return (
            "Flux looks into crds/ before Helm deletes it, and leaves it alone, since it is there: it comes back only "
            "with the next upgrade."
        )
    return "Helm does not read crds/ in an upgrade, so nothing brings the definition back."


def _what_keeps(gone: list[Gone], ended: StepResult) -> str:
    if not _by_helm(gone):
        return KEPT_BY.get(gone[0][0].actor, "")
    if ended.action not in ENDS:
        return ""
    return (
        "helm.sh/resource-policy: keep saves it only if the template has it: put there by kubectl annotate, it saves "
        "from upgrades and not from an uninstall."
    )


def _what_comes(moment: Moment) -> str:
    """Whether the engine was content, and what becomes of the next step."""
    ended = moment.ended
    content = f"{moment.speaker} reported success." if ended.outcome == "ok" else moment.says
    following = moment.rehearsal.steps[moment.index + 1] if moment.index + 1 < len(moment.rehearsal.steps) else None
    if following is None or following.action != "upgrade" or following.outcome == "ok":
        return content
    return f'{content} The next upgrade fails: "{following.error.strip()}"'


RULE = Rule("ST109", "crd-in-templates-deleted-on-uninstall", check)
