"""A Kustomization depends on one that is Ready as soon as it is applied, so it starts before those objects run.

## What happens
`dependsOn` waits until the other Kustomization is Ready. Without `wait: true` or `healthChecks` that only means that
its objects were applied; `healthChecks` only wait for the objects that they name. At that time a HelmRelease
in it has not started, no Deployment is available, no webhook answers, and no chart has created its CRDs. The dependent
Kustomization fails its dry run and is retried after its `retryInterval`, which defaults to the whole `interval`. The
second attempt usually succeeds, so the problem shows up when a cluster is rebuilt and looks like a slow network.

`dependsOn` of a Kustomization names Kustomizations only, `dependsOn` of a HelmRelease names HelmReleases only. It does
not order deletion.

## Example
```yaml
kind: Kustomization
metadata: {name: operators}
spec: {path: ./operators, prune: true}          # contains a HelmRelease; Ready when that object exists
---
kind: Kustomization
metadata: {name: databases}
spec: {path: ./databases, dependsOn: [{name: operators}]}
```

## Instead
Set `wait: true` on the Kustomization that others depend on: it is then Ready when all its objects are, including
HelmReleases. With `wait: true` Flux ignores `healthChecks`; without it, Flux waits only for the objects listed
there. A short `retryInterval` reduces the delay.

## Fix safety
With `wait: true`, one object that never becomes ready keeps the Kustomization and all its dependents from being Ready.
Check what it contains first.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.flux.reconciliations import (
    definition,
    delayed,
    dependencies,
    interval_of,
    is_checked,
    missing_kind,
)
from seatrial.evidence.moment import Moment, found
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case, Release, Resource
from seatrial.model.resource import Ref, dig
from seatrial.model.timeline import Event, Reconciled, Rehearsal


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    for late in (late for late in delayed(rehearsal, case) if late.own.ref.kind == "Kustomization"):
        moment = Moment(rehearsal, case, late.step)
        brings = _brings(case, late.release, rehearsal.steps[late.step].reconciled, late.first)
        early = list(_early(moment, late.own, late.release, late.first, brings[0].object if brings else None))
        if early:
            yield _finding(moment, late.own, early, late.first, brings)


def _early(
    moment: Moment, own: Resource, release: Release, first: Event, brings: Ref | None
) -> Iterator[tuple[int, Resource]]:
    """Dependencies that were Ready before the failure although Flux did not check what brings the missing kind."""
    said = (e for e in moment.events() if e.effect == "said" and e.index < first.index)
    ready = {event.object for event in said if event.message == "Ready"}
    for index, ref in dependencies(own):
        other = release.find(ref)
        if other is not None and ref in ready and not is_checked(other, brings):
            yield index, other


def _brings(
    case: Case, release: Release, reconciled: tuple[Reconciled, ...], first: Event
) -> tuple[Reconciled, Ref] | None:
    wanted = missing_kind(first.failure)
    pairs = ((one, definition(case, release, one, wanted)) for one in reconciled) if wanted else ()
    return next(((one, crd.ref) for one, crd in pairs if crd is not None), None)


def _finding(
    moment: Moment,
    own: Resource,
    early: list[tuple[int, Resource]],
    first: Event,
    brings: tuple[Reconciled, Ref] | None,
) -> Finding:
    names = " and ".join(str(other.ref) for _, other in early)
    how = "is Ready as soon as it is applied" if len(early) == 1 else "are Ready as soon as they are applied"
    if any(dig(other.body, "spec", "healthChecks") for _, other in early) and brings:
        how = f"has healthChecks, but none of {brings[0].object}"
    return found(
        RULE,
        moment,
        objects=[own.ref],
        damage="nuisance",
        message=f"{own.ref} fails at its first attempt: {names} {'is' if len(early) == 1 else 'are'} Ready too early",
        details=(
            f"{names} in its dependsOn {how}.",
            f'Flux reports: "{first.message}"',
            f"{brings[1]} is in {brings[0].object}, and Flux does not wait for that." if brings else "",
            f"Flux retries after {interval_of(own)} and then succeeds. Everything that depends on it waits until then.",
        ),
        places=[*(other.place("spec") for _, other in early), own.place("spec", "dependsOn", early[0][0])],
        evidence=[first],
        confirm=f"flux get kustomizations {own.ref.name} -n {own.ref.namespace}",
    )


RULE = Rule("ST921", "flux-dependson-without-wait", check)
