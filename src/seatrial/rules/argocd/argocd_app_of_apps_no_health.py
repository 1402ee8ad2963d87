"""Waves of child Applications order only when they are created: the next begins before the last has done anything.

## What happens
An `Application` has no health check since Argo CD 1.8. For the Application that makes it, a child is done as soon as
the object exists; two seconds later the next wave begins. What the children do then is side by side: the operator of
wave 0 is still being pulled while the custom resources of wave 1 are applied. They fail with an unknown kind or a
namespace that is not there, are tried five more times within some minutes, and then never again for this commit.

On a cluster that has everything it works, whatever the order. It shows when a cluster is built anew.

Where a health check for Applications is configured, the parent waits for each child. Even then a child that exists is
healthy by what it was before, so that a later sync does not wait for the new version of it.

## Example
```yaml
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata:
  name: operator
  annotations: {argocd.argoproj.io/sync-wave: "0"}
---
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata:
  name: uses-its-kinds
  annotations: {argocd.argoproj.io/sync-wave: "1"}     # two seconds later
```

## Instead
Give `argocd-cm` the health check of the documentation, `resource.customizations.health.argoproj.io_Application`. Or
give the later Application `syncPolicy.retry` with a limit that lasts, and its objects
`SkipDryRunOnMissingResource=true`; or let an ApplicationSet with `strategy: RollingSync` sync them in order.

## Fix safety
With the health check a parent waits for ever for a child that is never healthy.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.argocd.app_order import OutOfTurn, out_of_turn
from seatrial.evidence.argocd.syncs import in_words, look_at_operation
from seatrial.evidence.moment import Moment, found
from seatrial.helm import argocd_hooks
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case
from seatrial.model.resource import Ref
from seatrial.model.timeline import Rehearsal


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    told: set[Ref] = set()
    for one in out_of_turn(rehearsal, case):
        if one.later.object not in told:
            told.add(one.later.object)
            yield _finding(rehearsal, case, one)


def _finding(rehearsal: Rehearsal, case: Case, one: OutOfTurn) -> Finding:
    resources = [case.written(one.step, task.object) for task in (one.later, one.earlier)]
    return found(
        RULE,
        Moment(rehearsal, case, one.step),
        objects=[one.later.object],
        damage="failed-deploy",
        message=f"{one.parent.app} makes {one.later.object} in {in_words(one.later)}, before {one.earlier.object} of "
        f"{in_words(one.earlier)} has brought {one.lacks}",
        details=(
            f'Argo CD says of {one.failed.app}: "{one.failed.message}"',
            "A child Application has no health check: its wave is over as soon as it exists.",
            "After five retries an automated sync is not tried again for this commit."
            if one.failed.phase == "Failed" and one.failed.automated
            else "",
        ),
        places=[r.place("metadata", "annotations", argocd_hooks.WAVE) for r in resources if r is not None],
        confirm=look_at_operation(one.failed),
    )


RULE = Rule("ST807", "argocd-app-of-apps-no-health", check)
