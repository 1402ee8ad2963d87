"""A Deployment changes its strategy to Recreate: server-side apply keeps the rollingUpdate that the API server set.

## What happens
A Deployment without a strategy gets `RollingUpdate` with `rollingUpdate: {maxSurge: 25%, maxUnavailable: 25%}` from the
API server. The next revision sets `type: Recreate`. Server-side apply changes only fields that the manifest has, and
removes only fields that the same manager applied before. No manager applied `rollingUpdate`, so it stays. The API
server rejects the two together: `may not be specified when strategy type is 'Recreate'`. Every retry fails the same
way, and a fresh install succeeds.

Helm 4, Flux and `kubectl apply --server-side` do this. Helm 3 and `kubectl apply` do not: they send a patch in which
the strategy replaces the old one. `rollingUpdate: null` in the manifest does not help: server-side apply ignores it.

## Example
```yaml
apiVersion: apps/v1
kind: Deployment
spec:
  strategy:
    type: Recreate        # the previous revision has no strategy
```

## Instead
Change the live Deployment once, before the upgrade, with a patch that removes the field. To stop the old pod first
without that, keep `RollingUpdate` and set `maxSurge: 0` and `maxUnavailable: 1`.

## Fix safety
The patch does not restart pods: the strategy is not part of the pod template.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.moment import Moment, found
from seatrial.evidence.webhooks.calls import outcome_of
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case
from seatrial.model.resource import Ref, dig
from seatrial.model.timeline import Event, Rehearsal
from seatrial.phrases.objects import in_kubectl
from seatrial.phrases.outcome import after_failure

FIELD = "spec.strategy.rollingUpdate"


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    seen: set[Ref] = set()
    for event in rehearsal.timeline:
        if event.effect != "refused" or event.step < 0 or event.object in seen or not _is_kept(event):
            continue
        written = case.written(event.step, event.object)
        strategy = dig(written.body, "spec", "strategy") if written else None
        if isinstance(strategy, dict) and not strategy.get("rollingUpdate"):
            seen.add(event.object)
            yield _finding(rehearsal, case, event)


def _is_kept(event: Event) -> bool:
    causes = event.refusal.causes if event.refusal and event.object.kind == "Deployment" else ()
    return any(cause.field == FIELD and cause.reason == "FieldValueForbidden" for cause in causes)


def _finding(rehearsal: Rehearsal, case: Case, event: Event) -> Finding:
    moment, ref = Moment(rehearsal, case, event.step), event.object
    written = case.written(event.step, ref)
    return found(
        RULE,
        moment,
        objects=[ref],
        damage="failed-deploy",
        message=f"{outcome_of(moment)}: {ref} becomes Recreate and keeps rollingUpdate",
        details=(
            f'The API server reports: "{event.message}"',
            "The revision before does not set rollingUpdate: the API server did. Server-side apply removes only what "
            "the same manager has applied.",
            after_failure(moment),
        ),
        places=[written.place("spec", "strategy", "type")] if written else [],
        evidence=[event],
        confirm=f"kubectl get {in_kubectl(ref)} -o jsonpath='{{.spec.strategy}}'",
    )


RULE = Rule("ST307", "recreate-keeps-rollingupdate", check)
