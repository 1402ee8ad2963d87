"""A Kustomization holds a HelmRelease and objects of the kinds that its chart brings: none of them is ever applied.

## What happens
Flux has the server try all objects of a stage before it applies the first. Definitions and namespaces have a stage of
their own, but the definitions of a chart are not among the objects of the Kustomization: they come when helm-controller
installs the HelmRelease. The custom resource fails its trial, so the HelmRelease beside it is not applied either, so
the definition never comes. Waiting, `retryInterval` and `dependsOn` change nothing. Where the definition is in the
cluster from an earlier time it works, so it is found when a cluster is made anew.

## Example
```
infrastructure/cert-manager/
  helmrelease.yaml        # brings ClusterIssuer
  clusterissuer.yaml      # dry-run failed: no matches for kind "ClusterIssuer"
```

## Instead
Two Kustomizations: one with the HelmRelease and `wait: true`, one with the custom resources that depends on it.

## Fix safety
Objects that move to another Kustomization are pruned by the first one, unless the second has applied them before: set
`prune: false` on the first, or `kustomize.toolkit.fluxcd.io/prune: disabled` on them, for the time of the move.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.flux.reconciliations import definition, kustomizations, missing_kind
from seatrial.evidence.moment import Moment, found, moments
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case, Release
from seatrial.model.resource import Ref
from seatrial.model.timeline import Reconciled, Rehearsal


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    told = set()
    for moment in moments(rehearsal, case):
        release = moment.release
        for one in kustomizations(moment.ended) if release else ():
            wanted = missing_kind(one.message)
            bringing = [
                other
                for other in moment.ended.reconciled
                if release and wanted and other.object in one.objects and definition(release, other, wanted)
            ]
            if release and wanted and bringing and one.object not in told:
                told.add(one.object)
                yield _finding(moment, release, one, bringing[0], wanted)


def _finding(moment: Moment, release: Release, one: Reconciled, helm: Reconciled, wanted: tuple[str, str]) -> Finding:
    used = [ref for ref in one.objects if (ref.group, ref.kind) == wanted]
    written = [release.find(ref) for ref in (*used, helm.object)]
    said = [e for e in moment.events() if e.object == one.object and e.effect == "said"]
    return found(
        RULE,
        moment,
        objects=[one.object],
        damage="failed-deploy",
        message=f"{one.object} can never be applied as a whole: {_named(used)} needs a definition that "
        f"{helm.object} beside it brings",
        details=(
            f'Flux says of it: "{one.message}"',
            f"{definition(release, helm, wanted)} comes with the chart of {helm.object}, and that is not applied "
            "before all objects of the Kustomization pass their trial.",
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
