"""A claim is an object of the release like any other, so `helm uninstall` deletes it and the data on it.

## What happens
`helm uninstall` deletes everything that the manifest lists. A claim that stands there goes, and with it its volume
where the reclaim policy is `Delete`, which is the default of volumes that a StorageClass made; with `Retain` the volume
stays, Released, and only an administrator can get at its data. Nobody is asked. `--keep-history` keeps the record of
the release, not its objects.

That StatefulSets keep their data over an uninstall is another matter: the claims that they make from
`volumeClaimTemplates` are not in the manifest.

Flux uninstalls a release not only when its HelmRelease is deleted, but also to remedy a failed upgrade, where
`upgrade.remediation.strategy` is `uninstall`. The release is then installed anew, with a claim of the same name that is
empty.

`helm.sh/resource-policy: keep` saves a claim, if it stands in the manifest that Helm has stored. To annotate the live
claim by hand does not help here.

Of `pulumi destroy` and `kubectl delete -f` this is not told: who gives them asks for just that.

## Example
```yaml
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: {{ .Release.Name }}-data
```

## Instead
```yaml
  annotations:
    helm.sh/resource-policy: keep
```
Or let a switch say so, as charts do that are also used for tests.

## Fix safety
Adding `keep` is safe; it takes effect with the next upgrade, which stores it. The claim then stays behind, and an
install of the same release name in the same namespace takes it over with its data.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.argocd.syncs import is_argocd
from seatrial.evidence.flux.reconciliations import FLUX, holder
from seatrial.evidence.history import ENGINES, GOING
from seatrial.evidence.moment import Moment, found, moments
from seatrial.evidence.volumes import CLAIM, gone, volume_of
from seatrial.helm import hooks
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case, Release, Resource
from seatrial.model.resource import Ref
from seatrial.model.timeline import Event, Rehearsal
from seatrial.phrases.objects import users_sentence

KEPT_BY_HELM = (
    "Helm reads helm.sh/resource-policy from the manifest that it has stored; to annotate the live claim does not help."
)
KEPT_BY_FLUX = "kustomize.toolkit.fluxcd.io/prune: disabled on the claim keeps it."
REMEDY = "Helm uninstall remediation for release"
KEPT_BY_ARGOCD = (
    "argocd.argoproj.io/sync-options: Delete=false on the claim keeps it, and so does helm.sh/resource-policy: keep."
)

DELETES = (*ENGINES, FLUX)
"""Who deletes by a list that people did not write."""


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    for moment in moments(rehearsal, case):
        before = moment.before
        release = before if moment.ended.action in ("uninstall", "delete") else _remedied(moment)
        for event in moment.events() if release else ():
            claim = release.find(event.object) if release and event.object.kind == CLAIM else None
            if claim is None or hooks.is_hook(claim.body) or event.actor not in DELETES or event.effect not in GOING:
                continue
            if volume := volume_of(moment, claim.ref):
                yield _finding(moment, release, claim, event, volume)


def _remedied(moment: Moment) -> Release | None:
    """What Flux deploys, where it remedies a failed upgrade by uninstalling what was there before."""
    said = (e.message for e in moment.events() if e.object.kind == "HelmRelease" and e.effect == "said")
    uninstalls = any(words.startswith(REMEDY) for words in said)
    return moment.release if uninstalls and moment.before else None


def _finding(moment: Moment, release: Release | None, claim: Resource, deletion: Event, volume: Ref) -> Finding:
    assert release is not None
    ref, ended, lost = claim.ref, moment.ended, gone(moment, [volume])
    return found(
        RULE,
        moment,
        objects=[ref],
        damage="data-loss" if lost else "nuisance",
        message=f"{moment.act} deletes {ref}" + (" and the data on it" if lost else ", and leaves its data to nobody"),
        details=(
            users_sentence(release, ref),
            f"{volume} goes with it: its reclaim policy is Delete, the default of volumes that a StorageClass made."
            if lost
            else f"{volume} is Released: only an administrator can get at its data.",
            "Only claims that a StatefulSet makes from volumeClaimTemplates survive: the manifest does not list them. "
            + _kept(moment.rehearsal, deletion),
            "Flux remedies the failed upgrade so: upgrade.remediation.strategy of the HelmRelease is uninstall."
            if ended.action == "sync"
            else "",
        ),
        places=[claim.place("metadata", "name")],
        evidence=[deletion, *lost],
        confirm=_confirm(moment, ref, deletion),
    )


def _kept(rehearsal: Rehearsal, deletion: Event) -> str:
    if is_argocd(rehearsal):
        return KEPT_BY_ARGOCD
    return KEPT_BY_FLUX if deletion.actor == FLUX else KEPT_BY_HELM


def _confirm(moment: Moment, ref: Ref, deletion: Event) -> str:
    ended = moment.ended
    if is_argocd(moment.rehearsal):
        return f"argocd app resources {ended.release}  # lists the claim"
    held = (holder(earlier, ref) for earlier in moment.rehearsal.steps[moment.index :: -1])
    own = next(filter(None, held), Ref("", ended.namespace, ended.release))
    if deletion.actor == FLUX:
        return f"flux tree kustomization {own.name} -n {own.namespace}  # lists the claim"
    if ended.action == "sync":
        return f"kubectl get helmrelease {own.name} -n {own.namespace} -o jsonpath='{{.spec.upgrade.remediation}}'"
    get = f"helm get manifest {own.name} -n {own.namespace}"
    return f"{get}  # lists the claim, without helm.sh/resource-policy: keep"


RULE = Rule("ST402", "release-pvc-deleted-on-uninstall", check)
