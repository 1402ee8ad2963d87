"""A health check for Argo CD fails on an object that has no status yet.

## What happens
A custom resource has no `status` until its controller writes one. A script that reads `obj.status.phase` or loops over
`obj.status.conditions` then ends with `attempt to index a nil value`. Argo CD reports an error instead of a health: a
regular resource keeps its wave waiting, a hook fails its sync. The error is not in the message of the sync.

## Example
```yaml
data:
  resource.customizations.health.canal.example_Gate: |
    hs = {}
    if obj.status.phase == "Open" then
      hs.status = "Healthy"
    end
    return hs
```

## Instead
Ask for each level first: `if obj.status == nil then ...`. `seatrial generate health KIND.GROUP` writes such a check and
runs it on example states.

## Fix safety
A check that does not fail changes only what Argo CD waits for.
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
        if one.errors:
            yield _finding(moment, resource, one)


def _finding(moment: Moment, resource: Resource, one: TriedHealthCheck) -> Finding:
    state, error = one.errors[0]
    always = len(one.errors) == len(one.verdicts)
    when = "always" if always else f"on an object {state}"
    others = [name for name, _ in one.errors[1:]]
    return found(
        RULE,
        moment,
        objects=[resource.ref],
        damage="failed-deploy",
        certainty="may",
        message=f"the health check for {one.about} fails {when}",
        details=(
            f"Run on an example {state}, it ends with: {error}",
            f"It also fails on an object {' or '.join(others)}." if others and not always else "",
            "Argo CD then shows no health: a regular resource keeps its wave waiting, and a hook fails its sync. The "
            "message of the sync does not contain the error.",
        ),
        way_out=(f"Ask for each level before reading it, or take the check that {INSTEAD} {kind_of(one)} writes.",),
        places=[resource.place(*one.path)],
        confirm=f"kubectl get {resource.ref.kind.lower()} {resource.ref.name} -n argocd -o yaml",
    )


RULE = Rule("ST823", "argocd-health-check-fails-without-status", check, timeless=True)
