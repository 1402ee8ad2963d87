"""A HelmRelease fails once for a temporary reason, and Flux never retries it.

## What happens
helm-controller tries an install or upgrade once: `remediation.retries` defaults to 0. If that attempt meets a webhook
that does not answer yet, or waits longer than its timeout for something that comes late, the HelmRelease is `Stalled`
with the reason `RetriesExceeded`. The interval does not help: Flux retries only when the chart or the values change, or
when a user forces it. A Kustomization, in contrast, is retried forever. So is a HelmRelease that fails before Helm has
recorded a revision: a kind that is not served yet, a namespace that does not exist yet.

This is always reported as `may`: whether the one attempt comes too early depends on timing.

## Example
```yaml
kind: HelmRelease
metadata: {name: shop}
spec:
  interval: 10m
  chart: {spec: {chart: ./charts/shop, sourceRef: {kind: GitRepository, name: platform}}}
  # no dependsOn, no install.remediation: shop and the operator with the webhook are installed at the same time
```

## Instead
Name the HelmRelease that must be ready first in `dependsOn`. In addition, `install.remediation.retries: -1` and
`upgrade.remediation.retries: 3`, or `install.strategy.name: RetryOnFailure`, let Flux recover by itself.

## Fix safety
With remediation, Flux uninstalls the release between two install attempts and rolls back a failed upgrade: hooks run
each time. RetryOnFailure only upgrades again.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.moment import Moment, found, moments
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case
from seatrial.model.timeline import Reconciled, Rehearsal


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    reported = set()
    for moment in moments(rehearsal, case):
        for one in moment.ended.reconciled:
            if one.heals and one.object not in reported:
                reported.add(one.object)
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
        message=f"{one.object} stays failed, although its cause is gone when the {ended.action} ends",
        details=(
            f'Flux reports: "{one.message}"',
            "Flux retries only when the chart or the values change.",
        ),
        recover=f"flux reconcile helmrelease {name} -n {namespace} --force",
        places=[own.place("spec")] if own else (),
        evidence=failed[:1],
        confirm=f"kubectl get helmrelease {name} -n {namespace} "
        "-o jsonpath='{.status.conditions[?(@.type==\"Stalled\")].message}'",
    )


RULE = Rule("ST922", "flux-retries-exhausted", check)
