"""A Kustomization depends on another that is Ready as soon as it is applied, and begins before anything there runs.

## What happens
`dependsOn` waits until the other Kustomization is Ready. Without `wait: true` or `healthChecks` that means: its objects
were applied. A HelmRelease among them has then not even begun, no Deployment is up, no webhook answers, and no chart
has brought its definitions. The dependent Kustomization is tried on the server as a whole, fails, and is tried again
after its `retryInterval` - which is the whole `interval` where nobody sets it. It usually heals at the second attempt,
so it is met when a cluster is made anew, and looks like a slow network.

`dependsOn` of a Kustomization names Kustomizations only, and that of a HelmRelease HelmReleases only. It orders no
deletion either.

## Example
```yaml
kind: Kustomization
metadata: {name: operators}
spec: {path: ./operators, prune: true}          # holds a HelmRelease; Ready when that object exists
---
kind: Kustomization
metadata: {name: databases}
spec: {path: ./databases, dependsOn: [{name: operators}]}
```

## Instead
`wait: true` on the Kustomization that others depend on: it is Ready when all its objects are, HelmReleases included.
With `wait: true`, `healthChecks` are ignored; without it, they name what is waited for. A short `retryInterval` makes
what is left cheap.

## Fix safety
With `wait: true` an object that never becomes ready keeps the Kustomization, and all that depend on it, from being
Ready: look first at what is in it.
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
from seatrial.model.resource import Ref
from seatrial.model.timeline import Event, Reconciled, Rehearsal


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    for late in (late for late in delayed(rehearsal, case) if late.own.ref.kind == "Kustomization"):
        moment = Moment(rehearsal, case, late.step)
        early = list(_early(moment, late.own, late.release, late.first))
        if early:
            brings = _brings(late.release, rehearsal.steps[late.step].reconciled, late.first)
            yield _finding(moment, late.own, early, late.first, brings)


def _early(moment: Moment, own: Resource, release: Release, first: Event) -> Iterator[tuple[int, Resource]]:
    """What it depends on and what was called Ready before the failure, without anything having been looked at."""
    said = (e for e in moment.events() if e.effect == "said" and e.index < first.index)
    ready = {event.object for event in said if event.message == "Ready"}
    for index, ref in dependencies(own):
        other = release.find(ref)
        if other is not None and ref in ready and not is_checked(other):
            yield index, other


def _brings(release: Release, reconciled: tuple[Reconciled, ...], first: Event) -> tuple[Reconciled, Ref] | None:
    wanted = missing_kind(first.message)
    pairs = ((one, definition(release, one, wanted)) for one in reconciled) if wanted else ()
    return next(((one, ref) for one, ref in pairs if ref is not None), None)


def _finding(
    moment: Moment,
    own: Resource,
    early: list[tuple[int, Resource]],
    first: Event,
    brings: tuple[Reconciled, Ref] | None,
) -> Finding:
    names = " and ".join(str(other.ref) for _, other in early)
    how = "is Ready as soon as it is applied" if len(early) == 1 else "are Ready as soon as they are applied"
    return found(
        RULE,
        moment,
        objects=[own.ref],
        damage="nuisance",
        message=f"{own.ref} begins too early and fails at its first attempt: {names}, on which it depends, {how}",
        details=(
            f'Flux says of it: "{first.message}"',
            f"{brings[1]} comes with {brings[0].object}, which is waited for by nobody." if brings else "",
            f"It is tried again after {interval_of(own)}, and ends well then; all that depends on it waits as long.",
        ),
        places=[*(other.place("spec") for _, other in early), own.place("spec", "dependsOn", early[0][0])],
        evidence=[first],
        confirm=f"flux get kustomizations {own.ref.name} -n {own.ref.namespace}",
    )


RULE = Rule("ST921", "flux-dependson-without-wait", check)
