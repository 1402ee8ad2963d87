"""A PVC is a regular resource of the release, so `helm uninstall` deletes it and its data.

## What happens
`helm uninstall` deletes everything that the manifest lists. A PVC in it is deleted, and so is its volume if the reclaim
policy is `Delete`, the default of dynamically provisioned volumes; with `Retain` the volume stays, Released, and only
an administrator can access its data. Helm does not ask. `--keep-history` keeps the release record, not its objects.

StatefulSets keep their data over an uninstall, because the PVCs from `volumeClaimTemplates` are not in the manifest.

Flux uninstalls a release not only when its HelmRelease is deleted, but also after a failed upgrade if
`upgrade.remediation.strategy` is `uninstall`. It then installs the release again, with an empty PVC of the same name.

`helm.sh/resource-policy: keep` protects a PVC if it is in the manifest that Helm has stored. Annotating the live PVC by
hand does not help.

`pulumi destroy` and `kubectl delete -f` are not reported: there the deletion is what the user asks for.

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
Or make it optional with a value, as charts do that are also used for tests.

## Fix safety
Adding `keep` is safe; it takes effect with the next upgrade, which stores it. The PVC then stays behind, and an install
with the same release name and namespace adopts it with its data.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.argocd.syncs import is_argocd
from seatrial.evidence.flux.reconciliations import FLUX, holder
from seatrial.evidence.history import GOING
from seatrial.evidence.moment import Moment, found, moments
from seatrial.evidence.volumes import CLAIM, gone, volume_of
from seatrial.helm import hooks
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case, Release, Resource
from seatrial.model.resource import Ref
from seatrial.model.timeline import Event, Rehearsal
from seatrial.phrases.objects import users_sentence

KEPT_BY_HELM = "Helm reads helm.sh/resource-policy from the stored manifest; annotating the live PVC does not help."
KEPT_BY_FLUX = "kustomize.toolkit.fluxcd.io/prune: disabled on the PVC keeps it."
KEPT_BY_ARGOCD = (
    "argocd.argoproj.io/sync-options: Delete=false on the PVC keeps it, and so does helm.sh/resource-policy: keep."
)


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    for moment in moments(rehearsal, case):
        before = moment.before
        release = before if moment.ended.action in ("uninstall", "delete") else _remedied(moment)
        for event in moment.events() if release and not moment.ended.explicit else ():
            claim = release.find(event.object) if release and event.object.kind == CLAIM else None
            if (
                claim is None
                or hooks.is_hook(claim.body)
                or event.actor not in rehearsal.actors
                or event.effect not in GOING
            ):
                continue
            if volume := volume_of(moment, claim.ref):
                yield _finding(moment, release, claim, event, volume)


def _remedied(moment: Moment) -> Release | None:
    """The release, if Flux remediates its failed upgrade with an uninstall."""
    uninstalls = any("uninstall" in one.acts[1:] for one in moment.ended.reconciled)
    return moment.release if uninstalls and moment.before else None


def _finding(moment: Moment, release: Release | None, claim: Resource, deletion: Event, volume: Ref) -> Finding:
    assert release is not None
    ref, ended, lost = claim.ref, moment.ended, gone(moment, [volume])
    return found(
        RULE,
        moment,
        objects=[ref],
        damage="data-loss" if lost else "nuisance",
        message=f"{moment.act} deletes {ref}" + (" and its data" if lost else "; its volume stays, Released"),
        details=(
            users_sentence(release, ref),
            f"{volume} is deleted with it: its reclaim policy is Delete, the default for dynamic provisioning."
            if lost
            else f"{volume} is Released: only an administrator can access its data.",
            "Only PVCs from the volumeClaimTemplates of a StatefulSet survive: the manifest does not list them. "
            + _kept(moment.rehearsal, deletion),
            "Flux uninstalls after the failed upgrade: upgrade.remediation.strategy of the HelmRelease is uninstall."
            if ended.action == "sync"
            else "",
        ),
        places=[claim.place("metadata", "name")],
        evidence=[deletion, *lost],
        confirm=_confirm(moment, ref, deletion),
        removal=ended.role == "remove",
    )


def _kept(rehearsal: Rehearsal, deletion: Event) -> str:
    if is_argocd(rehearsal):
        return KEPT_BY_ARGOCD
    return KEPT_BY_FLUX if deletion.actor == FLUX else KEPT_BY_HELM


def _confirm(moment: Moment, ref: Ref, deletion: Event) -> str:
    ended = moment.ended
    if is_argocd(moment.rehearsal):
        return f"argocd app resources {ended.release}  # lists the PVC"
    held = (holder(earlier, ref) for earlier in moment.rehearsal.steps[moment.index :: -1])
    own = next(filter(None, held), Ref("", ended.namespace, ended.release))
    if deletion.actor == FLUX:
        return f"flux tree kustomization {own.name} -n {own.namespace}  # lists the PVC"
    if ended.action == "sync":
        return f"kubectl get helmrelease {own.name} -n {own.namespace} -o jsonpath='{{.spec.upgrade.remediation}}'"
    get = f"helm get manifest {own.name} -n {own.namespace}"
    return f"{get}  # lists the PVC, without helm.sh/resource-policy: keep"


RULE = Rule("ST402", "release-pvc-deleted-on-uninstall", check)
