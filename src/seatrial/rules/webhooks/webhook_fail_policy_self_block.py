"""A webhook that may not be ignored is about the pods of its own backend: once that is down, it can never come back.

## What happens
A webhook with `failurePolicy: Fail` (absent means that) about pods, whose selectors do not leave out its own backend,
has to be asked before a pod of the backend may be made. While one pod answers, nobody notices. When none does - all
were evicted, their only node was lost, or, on a first install, the configuration was stored before the first pod was
made - every new pod is refused because nothing answers, and nothing answers because every new pod is refused. So it
stays until someone deletes the configuration by hand. A webhook about pods of all namespaces takes the pods of
everybody else down with it.

On a first install Helm makes the configuration after the Deployment. Whether the first pod is made before that is a
matter of milliseconds: mostly it is, and the chart seems to work.

## Example
```yaml
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
webhooks:
  - name: pods.guard.example
    clientConfig: {service: {name: guard, namespace: guard}}
    rules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [pods]}]
    # neither namespaceSelector nor objectSelector: the pods of guard are asked about too
```

## Instead
Leave the backend out: a `namespaceSelector` that excludes its namespace (`kubernetes.io/metadata.name`, operator
`NotIn`, which every namespace has as a label), and `kube-system` as well; or an `objectSelector` that excludes its
pods.

## Fix safety
A selector that excludes one namespace changes nothing for the others.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.flux.reconciliations import is_flux
from seatrial.evidence.history import GOING
from seatrial.evidence.moment import Moment, found
from seatrial.evidence.webhooks.calls import (
    Call,
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


def _stays_down(rehearsal: Rehearsal, case: Case, call: Call) -> bool:
    """Whether the backend has no pod when all that can happen has happened."""
    owner = state_after(Moment(rehearsal, case, call.event.step)).get(call.event.object)
    ready = dig(owner, "status", "readyReplicas") or dig(owner, "status", "numberReady") or 0
    return owner is not None and not ready


def _finding(rehearsal: Rehearsal, case: Case, call: Call) -> Finding:
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
        message=f'webhook "{webhook.name}" is about the pods of its own backend: once {_backend(event.object)} has '
        "none, none can ever be made",
        details=(
            f'{event.object} says: "{event.message}"',
            f"It is asked about {covers(webhook)}, may not be ignored, and its selectors exclude neither its own "
            "namespace nor its own pods.",
            _how(rehearsal, call),
            _reported(moment),
            f"Only deleting the configuration helps: {_delete(webhook.configuration)}",
        ),
        places=[configuration.place("webhooks", webhook.index, "namespaceSelector")] if configuration else [],
        evidence=[*([made] if made else ()), event],
        confirm=f"kubectl get events -n {event.object.namespace} --field-selector reason=FailedCreate",
    )


def _backend(ref: Ref) -> str:
    """A ReplicaSet is the Deployment's."""
    return str(ref).rpartition("-")[0].replace("ReplicaSet", "Deployment") if ref.kind == "ReplicaSet" else str(ref)


def _how(rehearsal: Rehearsal, call: Call) -> str:
    webhook, step = call.webhook, call.event.step
    earlier = any(
        e.object.kind == "Pod" and e.effect in GOING and backs(e.before or {}, state(rehearsal, e).get(webhook.service))
        for e in rehearsal.timeline[: call.event.index]
    )
    if earlier:
        return f"The {rehearsal.steps[step].action} stopped the pods that answered before the new ones were made."
    return (
        f"{webhook.configuration} was registered before the first pod behind {webhook.service} was made. The same "
        "comes of an eviction of all its pods at any later time."
    )


def _reported(moment: Moment) -> str:
    ended = moment.ended
    if ended.outcome == "ok" and is_flux(moment.rehearsal):
        return "Flux is content: without wait a Kustomization is Ready as soon as it is applied."
    if ended.outcome == "ok":
        return (
            f"Helm reports success: it does not wait for pods without --wait, and records the {ended.action} as done."
        )
    return f'The {ended.action} ends: "{ended.error.strip()}"'


def _delete(ref: Ref) -> str:
    return f"kubectl delete {ref.kind.lower()} {ref.name}"


RULE = Rule("ST503", "webhook-fail-policy-self-block", check)
