"""A health check for Argo CD has a pattern that replaces the built-in checks of other kinds.

## What happens
A check under `all`, `*/*` or `apps/*` is used for every kind that matches, before those of Argo CD itself. Deployments,
Services and PVCs are then judged by a script that was written for something else, and waves no longer wait for them, or
wait forever.

## Example
```yaml
data:
  resource.customizations.health.all: |
    hs = {status = "Progressing"}
    if obj.status ~= nil and obj.status.phase == "Ready" then
      hs.status = "Healthy"
    end
    return hs
```

## Instead
One key for each kind: `resource.customizations.health.canal.example_Gate`.

## Fix safety
The built-in checks count again, and a wave may wait for what they find.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.moment import Moment, found
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case, Resource, TriedHealthCheck
from seatrial.model.timeline import Rehearsal
from seatrial.phrases.health_checks import configured

NAMED_MAX = 5


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    for moment, resource, one in configured(rehearsal, case):
        if one.replaces:
            yield _finding(moment, resource, one)


def _finding(moment: Moment, resource: Resource, one: TriedHealthCheck) -> Finding:
    kinds = [name.rpartition("/")[2] for name in one.replaces]
    more = f" and {len(kinds) - NAMED_MAX} more" if kinds[NAMED_MAX:] else ""
    return found(
        RULE,
        moment,
        objects=[resource.ref],
        damage="nuisance",
        message=f"the health check for {one.about} replaces the built-in ones of {len(kinds)} kinds",
        details=(
            f"It is used for {', '.join(kinds[:NAMED_MAX])}{more} in place of Argo CD's own check, and for every "
            "custom kind that matches.",
        ),
        places=[resource.place(*one.path)],
    )


RULE = Rule("ST825", "argocd-health-check-too-broad", check, timeless=True)
