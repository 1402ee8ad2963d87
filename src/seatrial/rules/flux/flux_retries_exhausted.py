"""A HelmRelease fails once for a reason that passes, and Flux never tries it again.

## What happens
helm-controller tries an install or upgrade once: `remediation.retries` is 0 where nobody says otherwise. If that one
attempt meets a webhook that does not answer yet, or waits longer than its timeout for something that comes late, the
HelmRelease is `Stalled` with the reason `RetriesExceeded`. It is not the interval that helps then: the release is only
tried again when its chart or values change, or when somebody forces it. A Kustomization is different; it is tried again
for ever. So is what fails before Helm has written a revision down: a kind that is not served yet, a namespace that is
not there yet.

This is always told as `may`: whether the one attempt comes too early is a matter of moments.

## Example
```yaml
kind: HelmRelease
metadata: {name: shop}
spec:
  interval: 10m
  chart: {spec: {chart: ./charts/shop, sourceRef: {kind: GitRepository, name: platform}}}
  # no dependsOn, no install.remediation: shop and the operator whose webhook is asked are installed side by side
```

## Instead
Name the HelmRelease that must be ready first in `dependsOn`. Beside that, `install.remediation.retries: -1` and
`upgrade.remediation.retries: 3`, or `install.strategy.name: RetryOnFailure`, make what passes heal by itself.

## Fix safety
Between two attempts of an install with remediation the release is uninstalled, and a failed upgrade is rolled back:
hooks run each time. RetryOnFailure only upgrades again.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.moment import Moment, found, moments
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case
from seatrial.model.timeline import Reconciled, Rehearsal


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    told = set()
    for moment in moments(rehearsal, case):
        for one in moment.ended.reconciled:
            if one.heals and one.object not in told:
                told.add(one.object)
                yield _finding(moment, one)


def _finding(moment: Moment, one: Reconciled) -> Finding:
    ended = moment.ended
    own = moment.case.written(moment.index, one.object)
    failed = [e for e in moment.events() if e.object == one.object and e.effect == "said" and e.message]
    name, namespace = one.object.name, one.object.namespace
    return found(
        RULE,
        moment,
        objects=[one.object],
        damage="failed-deploy",
        certainty="may",
        message=f"{one.object} stays failed for good, although what stopped it is over when the {ended.action} ends",
        details=(
            f'Flux says of it: "{one.message}"',
            "It is tried again only when its chart or values change, or by hand: "
            f"flux reconcile helmrelease {name} -n {namespace} --force",
        ),
        places=[own.place("spec")] if own else (),
        evidence=failed[:1],
        confirm=f"kubectl get helmrelease {name} -n {namespace} "
        "-o jsonpath='{.status.conditions[?(@.type==\"Stalled\")].message}'",
    )


RULE = Rule("ST922", "flux-retries-exhausted", check)
