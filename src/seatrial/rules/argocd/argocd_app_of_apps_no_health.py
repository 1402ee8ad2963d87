"""Waves of child Applications only order their creation: the next wave starts before the last one is deployed.

## What happens
`Application` has no health check since Argo CD 1.8. For the parent, a child is done as soon as the object exists; two
seconds later the next wave starts. The children then sync concurrently: the operator of wave 0 is still being pulled
while the custom resources of wave 1 are applied. They fail with an unknown kind or a missing namespace, are retried
five times within some minutes, and then never again for this commit.

On an existing cluster every order works. The problem shows up when a cluster is rebuilt.

If a health check for Applications is configured, the parent waits for each child. Even then an existing child is
healthy by its old state, so a later sync does not wait for its new version.

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
Add the health check from the Argo CD documentation to `argocd-cm`,
`resource.customizations.health.argoproj.io_Application`. Or give the later Application `syncPolicy.retry` with a high
limit, and its objects `SkipDryRunOnMissingResource=true`; or sync them in order with an ApplicationSet and `strategy:
RollingSync`.

## Fix safety
With the health check, a parent waits forever for a child that never becomes healthy.
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
    reported: set[Ref] = set()
    for one in out_of_turn(rehearsal, case):
        if one.later.object not in reported:
            reported.add(one.later.object)
            yield _finding(rehearsal, case, one)


def _finding(rehearsal: Rehearsal, case: Case, one: OutOfTurn) -> Finding:
    resources = [case.written(one.step, task.object) for task in (one.later, one.earlier)]
    return found(
        RULE,
        Moment(rehearsal, case, one.step),
        objects=[one.later.object],
        damage="failed-deploy",
        message=f"{one.parent.app} creates {one.later.object} before {one.earlier.object} has created {one.lacks}",
        details=(
            f"{one.later.object} is in {in_words(one.later)}, {one.earlier.object} in {in_words(one.earlier)}.",
            f'Argo CD reports for {one.failed.app}: "{one.failed.message}"',
            "A child Application has no health check: its wave is done as soon as it exists.",
            "After five retries Argo CD does not retry an automated sync of this commit."
            if one.failed.phase == "Failed" and one.failed.automated
            else "",
        ),
        places=[r.place("metadata", "annotations", argocd_hooks.WAVE) for r in resources if r is not None],
        confirm=look_at_operation(one.failed),
    )


RULE = Rule("ST807", "argocd-app-of-apps-no-health", check)
