"""A health check for Argo CD returns Healthy whatever the object's state is.

## What happens
Such checks are written to get past a wave that waits forever. They hide every reason to wait, not only that one: later
waves begin before the object works, PostSync hooks run against it, and the Application is Healthy while it is broken.

## Example
```yaml
data:
  resource.customizations.health.canal.example_Gate: |
    hs = {}
    hs.status = "Healthy"
    return hs
```

## Instead
Return Progressing until the object is ready, and Degraded if it failed. `seatrial generate health KIND.GROUP` writes
such a check. If nothing ever reports the state of a kind, it needs no check: Argo CD considers it healthy as soon as it
exists. To leave one object out, annotate it with `argocd.argoproj.io/ignore-healthcheck: "true"`.

## Fix safety
A check that tells the truth may show that a wave waits for something that never becomes ready.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.moment import Moment, found
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case, Resource, TriedHealthCheck
from seatrial.model.timeline import Rehearsal
from seatrial.phrases.health_checks import INSTEAD, configured, kind_of


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    for moment, resource, one in configured(rehearsal, case):
        if one.only_healthy and one.verdicts and all(status == "Healthy" for _, status in one.verdicts):
            yield _finding(moment, resource, one)


def _finding(moment: Moment, resource: Resource, one: TriedHealthCheck) -> Finding:
    return found(
        RULE,
        moment,
        objects=[resource.ref],
        damage="nuisance",
        message=f"the health check for {one.about} returns Healthy for every state",
        details=(
            f"It was run on {len(one.verdicts)} example states, also on failed ones, and knows no other status.",
            "Later waves and PostSync hooks do not wait for such objects, and the Application is Healthy while they "
            "are broken.",
        ),
        way_out=(
            f"Return Progressing until it is ready ({INSTEAD} {kind_of(one)}), or annotate single objects with "
            'argocd.argoproj.io/ignore-healthcheck: "true".',
        ),
        places=[resource.place(*one.path)],
    )


RULE = Rule("ST824", "argocd-health-check-always-healthy", check, timeless=True)
