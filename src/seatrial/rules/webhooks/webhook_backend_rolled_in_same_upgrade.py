"""An upgrade replaces the pods behind a webhook and, at the same time, writes objects that call the webhook.

## What happens
Helm applies a Deployment and does not wait for its pods. Custom resources come last; by then the pods behind their
webhook are being replaced. If the old pods may stop before a new one is ready (strategy `Recreate`, a `maxUnavailable`
that covers all replicas, a Service that now selects other pods), nothing answers for some seconds, and what Helm writes
then is rejected. The upgrade stops half way: everything before the rejected object is changed, and what the chart no
longer has is not deleted.

With `RollingUpdate` and one replica, `maxUnavailable` of 25% is rounded down to 0: the old pod stays until the new one
is ready. So many charts work with a single replica, until `Recreate` is set for another reason.

## Example
```yaml
apiVersion: apps/v1
kind: Deployment
metadata: {name: gate}
spec:
  strategy: {type: Recreate}     # stops the pod behind the webhook first
  template: {...}                # this upgrade changes the image
```

## Instead
Keep a part of the backend running: `RollingUpdate` with `maxUnavailable: 0`, or two replicas. Or serve webhooks from a
separate Deployment that rarely changes. Or put the objects into their own release, upgraded after the backend's with
`--wait`.

## Fix safety
Two replicas of a controller need leader election; two of a webhook server do not. `Recreate` is often there because of
a volume that only one pod can use: then use a separate Deployment for the webhook.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.flux.reconciliations import is_flux
from seatrial.evidence.moment import Moment, found
from seatrial.evidence.webhooks.calls import (
    RejectingCall,
    behind,
    outcome_of,
    refused_by_cause,
    replaced,
    state,
    state_after,
    workload_ref,
)
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case
from seatrial.model.resource import Body, Ref, dig
from seatrial.model.timeline import Event, Rehearsal
from seatrial.phrases.outcome import first_named, revisions


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    for calls in refused_by_cause(rehearsal, case, "rolled").values():
        yield _finding(rehearsal, case, calls)


def _finding(rehearsal: Rehearsal, case: Case, calls: list[RejectingCall]) -> Finding:
    first, step = calls[0], calls[0].event.step
    moment = Moment(rehearsal, case, step)
    webhook = first.webhook
    refused = list(dict.fromkeys(call.event.object for call in calls))
    changed, body = _changed(rehearsal, case, first)
    backer, configuration = case.written(step, changed), case.written(step, webhook.configuration)
    return found(
        RULE,
        moment,
        objects=[webhook.configuration],
        damage="failed-deploy",
        message=f'{outcome_of(moment)}: it replaces the pods of webhook "{webhook.name}", called for '
        f"{first_named(refused)}",
        details=(
            f'The API server reports: "{first.event.message}"',
            f"{changed} is behind {webhook.service} and is changed in the same "
            f"{rehearsal.steps[step].action}{_gap(body)}.",
            f"Helm does not wait for pods in between; {'Flux' if is_flux(rehearsal) else '--wait'} only waits after "
            "everything is applied. Objects before it are changed; what the new revision drops is not deleted.",
            revisions(moment),
        ),
        places=[
            *([backer.place("spec", "strategy", "type")] if backer else ()),
            *([configuration.place("webhooks", webhook.index, "name")] if configuration else ()),
        ],
        evidence=[*_deeds(rehearsal, first, changed), *(call.event for call in calls[:3])],
        confirm=f"kubectl get endpointslices -n {webhook.service.namespace} -l "
        f"kubernetes.io/service-name={webhook.service.name} -w  # while the upgrade runs",
    )


def _changed(rehearsal: Rehearsal, case: Case, call: RejectingCall) -> tuple[Ref, Body]:
    """The changed object behind the webhook: the workload, or else its Service."""
    world, began = state(rehearsal, call.event), state_after(Moment(rehearsal, case, call.event.step - 1))
    for body in behind(world, call.webhook.service):
        if replaced(began, world, workload_ref(body)):
            return workload_ref(body), body
    return call.webhook.service, world.get(call.webhook.service) or {}


def _gap(body: Body) -> str:
    if dig(body, "spec", "strategy", "type") == "Recreate":
        return ": its strategy is Recreate, so the old pods stop before the new ones start"
    if body.get("kind") == "Service":
        return ", and selects pods that are not ready yet"
    return ", in a way that may leave no pod ready in between"


def _deeds(rehearsal: Rehearsal, call: RejectingCall, ref: Ref) -> Iterator[Event]:
    for event in rehearsal.of_step(call.event.step):
        if event.object == ref and event.actor == "helm" and event.effect in ("changed", "deleted", "created"):
            yield event


RULE = Rule("ST505", "webhook-backend-rolled-in-same-upgrade", check)
