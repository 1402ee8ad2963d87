"""A webhook with `failurePolicy: Fail` matches the pods of its own backend: once they are down, none can start.

## What happens
A webhook with `failurePolicy: Fail` (the default) that matches pods and does not exclude its own backend is called
before a pod of the backend is created. While one pod answers, this goes unnoticed. When none does (all were evicted,
their only node was lost, or, on a first install, the configuration was stored before the first pod was created), every
new pod is rejected because the webhook does not answer, and it does not answer because every new pod is rejected. Only
deleting the configuration by hand helps. A webhook for pods in all namespaces blocks all other pods as well.

On a first install Helm creates the configuration after the Deployment. Whether the first pod is created before that is
a matter of milliseconds: usually it is, and the chart seems to work.

## Example
```yaml
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
webhooks:
  - name: pods.guard.example
    clientConfig: {service: {name: guard, namespace: guard}}
    rules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [pods]}]
    # neither namespaceSelector nor objectSelector: it also matches the pods of guard
```

## Instead
Exclude the backend: a `namespaceSelector` that excludes its namespace (label `kubernetes.io/metadata.name`, which every
namespace has, operator `NotIn`), and `kube-system` as well; or an `objectSelector` that excludes its pods.

## Fix safety
A selector that excludes one namespace does not affect the others.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.flux.reconciliations import is_flux
from seatrial.evidence.history import GOING
from seatrial.evidence.moment import Moment, found
from seatrial.evidence.webhooks.calls import (
    RejectingCall,
    backs,
    covers,
    refused_by_cause,
    registered,
    state,
    state_after,
)
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case
from seatrial.model.resource import Ref, dig
from seatrial.model.timeline import Rehearsal


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    for calls in refused_by_cause(rehearsal, case, "itself").values():
        if _stays_down(rehearsal, case, calls[0]):
            yield _finding(rehearsal, case, calls[0])


def _stays_down(rehearsal: Rehearsal, case: Case, call: RejectingCall) -> bool:
    """Whether the backend still has no ready pod when the cluster has settled."""
    owner = state_after(Moment(rehearsal, case, call.event.step)).get(call.event.object)
    ready = dig(owner, "status", "readyReplicas") or dig(owner, "status", "numberReady") or 0
    return owner is not None and not ready


def _finding(rehearsal: Rehearsal, case: Case, call: RejectingCall) -> Finding:
    webhook, event = call.webhook, call.event
    step = event.step
    moment = Moment(rehearsal, case, step)
    configuration = case.written(step, webhook.configuration)
    made = registered(rehearsal, call)
    return found(
        RULE,
        moment,
        objects=[webhook.configuration],
        damage="outage",
        message=f'webhook "{webhook.name}" blocks the pods of its own backend once {_backend(event.object)} has none',
        details=(
            f'{event.object} reports: "{event.message}"',
            f"It is called for {covers(webhook)}, has failurePolicy Fail, and its selectors exclude neither its own "
            "namespace nor its own pods.",
            _how(rehearsal, call),
            _reported(moment),
        ),
        recover=f"{_delete(webhook.configuration)}  # nothing else helps",
        places=[configuration.place("webhooks", webhook.index, "namespaceSelector")] if configuration else [],
        evidence=[*([made] if made else ()), event],
        confirm=f"kubectl get events -n {event.object.namespace} --field-selector reason=FailedCreate",
    )


def _backend(ref: Ref) -> str:
    """The Deployment of a ReplicaSet."""
    return str(ref).rpartition("-")[0].replace("ReplicaSet", "Deployment") if ref.kind == "ReplicaSet" else str(ref)


def _how(rehearsal: Rehearsal, call: RejectingCall) -> str:
    webhook, step = call.webhook, call.event.step
    earlier = any(
        e.object.kind == "Pod" and e.effect in GOING and backs(e.before or {}, state(rehearsal, e).get(webhook.service))
        for e in rehearsal.timeline[: call.event.index]
    )
    if earlier:
        return f"The {rehearsal.steps[step].action} stopped the old pods before the new ones were created."
    return (
        f"{webhook.configuration} was registered before the first pod behind {webhook.service} was created. The same "
        "happens at any later time when all its pods are evicted."
    )


def _reported(moment: Moment) -> str:
    ended = moment.ended
    if ended.outcome == "ok" and is_flux(moment.rehearsal):
        return "Flux reports Ready: without wait: true a Kustomization is Ready as soon as it is applied."
    if ended.outcome == "ok":
        return (
            f"Helm reports success: without --wait it does not wait for pods, and records the {ended.action} as done."
        )
    return f'The {ended.action} fails: "{ended.error.strip()}"'


def _delete(ref: Ref) -> str:
    return f"kubectl delete {ref.kind.lower()} {ref.name}"


RULE = Rule("ST503", "webhook-fail-policy-self-block", check)
