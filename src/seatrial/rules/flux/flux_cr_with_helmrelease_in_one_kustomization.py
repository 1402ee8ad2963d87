"""A Kustomization contains a HelmRelease and custom resources of its chart's CRDs: none of them is ever applied.

## What happens
Flux dry-runs all objects of a stage on the server before it applies the first. CRDs and namespaces have a stage of
their own, but the CRDs of a chart are not objects of the Kustomization: helm-controller creates them when it installs
the HelmRelease. The dry run of the custom resource fails, so the HelmRelease beside it is not applied either, so the
CRD is never created. Waiting, `retryInterval` and `dependsOn` do not help. On a cluster that already has the CRD it
works, so the problem shows up when a cluster is rebuilt.

## Example
```
infrastructure/cert-manager/
  helmrelease.yaml        # its chart has the CRD of ClusterIssuer
  clusterissuer.yaml      # dry-run failed: no matches for kind "ClusterIssuer"
```

## Instead
Use two Kustomizations: one with the HelmRelease and `wait: true`, and one with the custom resources that depends on it.

## Fix safety
The first Kustomization prunes objects that move to another one, unless the second has applied them before. During the
move, set `prune: false` on the first, or `kustomize.toolkit.fluxcd.io/prune: disabled` on the objects.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.flux.reconciliations import definition, kustomizations, missing_kind
from seatrial.evidence.moment import Moment, found, moments
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case, Release
from seatrial.model.resource import Ref
from seatrial.model.timeline import Reconciled, Rehearsal
from seatrial.phrases.outcome import first_named


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    reported = set()
    for moment in moments(rehearsal, case):
        release = moment.release
        for one in kustomizations(moment.ended) if release else ():
            wanted = missing_kind(one.failure)
            bringing = [
                other
                for other in moment.ended.reconciled
                if release and wanted and other.object in one.objects and definition(case, release, other, wanted)
            ]
            if release and wanted and bringing and one.object not in reported:
                reported.add(one.object)
                yield _finding(moment, release, one, bringing[0], wanted)


def _finding(moment: Moment, release: Release, one: Reconciled, helm: Reconciled, wanted: tuple[str, str]) -> Finding:
    crd = definition(moment.case, release, helm, wanted)
    used = [ref for ref in one.objects if (ref.group, ref.kind) == wanted]
    written = [release.find(ref) for ref in (*used, helm.object)]
    said = [e for e in moment.events() if e.object == one.object and e.effect == "said"]
    return found(
        RULE,
        moment,
        objects=[one.object],
        damage="failed-deploy",
        message=f"{one.object} is never applied: {first_named(used)} needs a CRD of {helm.object}",
        details=(
            f'Flux reports: "{one.message}"',
            f"{crd.ref if crd else 'The CRD'} is in the chart of {helm.object}, which is in the same "
            "Kustomization. Flux applies it only when the dry run of every object in the Kustomization succeeds.",
            f"Not applied: {_named([ref for ref in one.objects if ref.kind not in ('Namespace',)])}.",
        ),
        places=[resource.place("kind") for resource in written if resource],
        evidence=said[:1],
        confirm=f"flux get kustomizations {one.object.name} -n {one.object.namespace}",
    )


def _named(refs: list[Ref]) -> str:
    shown = ", ".join(map(str, refs[:5]))
    return f"{shown} and {len(refs) - 5} more" if len(refs) > 5 else shown


RULE = Rule("ST923", "flux-cr-with-helmrelease-in-one-kustomization", check)
