"""An object is rejected because the webhook that must be called for it does not answer yet.

## What happens
A webhook configuration is effective as soon as it is stored. Its backend is a pod that must first be scheduled, pull
its image, start and become ready. Every matching object that is written in between is rejected, unless the
`failurePolicy` is `Ignore` (the default is `Fail`).

Helm applies the objects of a release kind by kind and waits for none of them. `--wait` does not help: it only waits
after everything is applied. Helm 4 creates webhook configurations right after the built-in kinds, so every custom
resource of the release comes after them. Helm 3 has no order for them and sorts them among the custom resources, by
kind name. In both, built-in kinds of the release come first.

Retrying usually works, so the failure looks random. If the webhook matches Secrets, retrying does not help: Helm cannot
update its release Secret, reports success anyway, and every later upgrade fails with `another operation
(install/upgrade/rollback) is in progress`.

## Example
```yaml
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
webhooks:
  - name: gates.canal.example
    clientConfig: {service: {name: gate-webhook, namespace: canal}}    # a Deployment of the same chart
    rules: [{operations: [CREATE], apiGroups: [canal.example], apiVersions: [v1], resources: [gates]}]
---
apiVersion: canal.example/v1
kind: Gate                                                             # in the same chart
```

## Instead
Put the custom resources into their own release, installed after the first one with `--wait`. Or make them post-install
hooks after a hook Job that waits until the webhook answers. A ready pod does not always mean a ready webhook: some pods
are ready before they have their certificate.

## Fix safety
Custom resources that become hooks are no longer part of the release: for an existing release this is a release-to-hook
flip, which deletes them. `failurePolicy: Ignore` lets through what the webhook should reject.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.flux.reconciliations import holder, is_flux
from seatrial.evidence.moment import Moment, found
from seatrial.evidence.pulumi.programs import is_pulumi
from seatrial.evidence.webhooks.calls import (
    RejectingCall,
    Webhook,
    is_record,
    outcome_of,
    refused_by_cause,
    registered,
    state,
)
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case
from seatrial.model.resource import Ref
from seatrial.model.timeline import Event, Rehearsal
from seatrial.phrases.outcome import first_named, revisions

PENDING = {"install": "pending-install", "upgrade": "pending-upgrade", "rollback": "pending-rollback"}


HELM_WAITS = "and does not wait in between; --wait only waits after everything is applied."
"""Of Helm, in every version."""
ORDER_OF_HELM_4 = f"Helm 4 creates webhook configurations before all custom resources, {HELM_WAITS}"
ORDER_OF_HELM_3 = (
    f"Helm 3 creates webhook configurations and custom resources in the order of their kind names, {HELM_WAITS}"
)
ORDERS = {
    "Argo CD": "Argo CD applies webhook configurations and custom resources of one wave in the order of their kind "
    "names, and checks health only after the whole wave is applied.",
    "kubectl": "kubectl applies objects in file order and does not wait.",
    "Pulumi": "Pulumi creates resources without dependencies concurrently.",
    "Flux": "Flux dry-runs all objects of a Kustomization before it applies any, webhook configurations last.",
}
"""The order of each engine that puts the webhook before the object."""


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    unknown = refused_by_cause(rehearsal, case, "authority")
    for configuration, calls in refused_by_cause(rehearsal, case, "unready").items():
        if configuration not in unknown:  # Reported by webhook-tls-not-injected: a ready backend would not help.
            yield _finding(rehearsal, case, calls)


def _finding(rehearsal: Rehearsal, case: Case, calls: list[RejectingCall]) -> Finding:
    first, step = calls[0], calls[0].event.step
    moment = Moment(rehearsal, case, step)
    refused = list(dict.fromkeys(call.event.object for call in calls))
    webhook = first.webhook
    written = [case.written(step, ref) for ref in refused]
    configuration = case.written(step, webhook.configuration)
    return found(
        RULE,
        moment,
        objects=[webhook.configuration],
        damage="nuisance" if _is_healed(moment, refused) else "failed-deploy",
        message=_message(moment, refused, webhook),
        details=(
            "It matches the release Secrets of Helm." if all(map(is_record, refused)) else "",
            f'The API server reports: "{first.event.message}"',
            _order(rehearsal, case, first),
            revisions(moment),
            _again(moment, refused),
        ),
        places=[
            *(resource.place("kind") for resource in written[:1] if resource),
            *([configuration.place("webhooks", webhook.index, "name")] if configuration else ()),
        ],
        evidence=[*filter(None, [registered(rehearsal, first)]), *(call.event for call in calls[:3])],
        confirm=f"kubectl get endpointslices -n {webhook.service.namespace} -l "
        f"kubernetes.io/service-name={webhook.service.name} -w  # during the step: no endpoint is ready",
    )


def _message(moment: Moment, refused: list[Ref], webhook: Webhook) -> str:
    if all(map(is_record, refused)):
        return f'{outcome_of(moment)}, but Helm cannot record it: webhook "{webhook.name}" is not ready'
    what = [ref for ref in refused if not is_record(ref)]
    but = " only on retry:" if _is_healed(moment, what) else ", but" if moment.ended.outcome == "ok" else ":"
    return f'{outcome_of(moment)}{but} webhook "{webhook.name}" is not ready for {first_named(what)}'


def _order(rehearsal: Rehearsal, case: Case, call: RejectingCall) -> str:
    event, configuration = call.event, call.webhook.configuration
    made = registered(rehearsal, call)
    if made is not None and made.step == event.step and is_pulumi(rehearsal):
        return (
            f"{configuration} is registered in the same up, and the pods behind {call.webhook.service} have not "
            "started. Nothing in the program orders the two, so Pulumi creates both concurrently. It retries a "
            "creation only while the kind or the namespace is missing: a webhook failure is final."
        )
    apart = _apart(Moment(rehearsal, case, event.step), event.object, configuration)
    if made is not None and made.step == event.step and apart:
        return (
            f"{configuration} is registered just before, when the pods behind {call.webhook.service} are not ready "
            f"yet. {apart[0]} does not wait for {apart[1]}: Flux reconciles both concurrently."
        )
    if made is not None and made.step == event.step:
        order = _order_of_kinds(rehearsal, event)
        order = order.replace("--wait only waits", "Flux only waits") if is_flux(rehearsal) else order
        return (
            f"The same {rehearsal.steps[event.step].action} registers {configuration} just before, when the pods "
            f"behind {call.webhook.service} are not ready yet. {order}".rstrip()
        )
    if call.webhook.service not in state(rehearsal, event):
        return f"{configuration} is registered, and {call.webhook.service} is not created yet."
    earlier = rehearsal.steps[made.step] if made is not None and made.step >= 0 else None
    whose = f"Nothing waited for release {earlier.release}" if earlier else "Nothing waited for its backend"
    return f"{configuration} is registered, and the pods behind {call.webhook.service} have not started. {whose}."


def _apart(moment: Moment, ref: Ref, configuration: Ref) -> tuple[Ref, Ref] | None:
    """The Flux objects that contain the one and the other, if they differ."""
    ended = moment.ended
    own, other = holder(ended, ref), holder(ended, configuration)
    return (own, other) if own and other and own != other else None


def _is_healed(moment: Moment, refused: list[Ref]) -> bool:
    """Whether the engine retried by itself, as Flux and Argo CD do, and everything exists in the end."""
    ended = moment.ended
    return ended.outcome == "ok" and all(ref in ended.created and not is_record(ref) for ref in refused)


def _again(moment: Moment, refused: list[Ref]) -> str:
    """What the engine, or the next steps, do with the rejected objects."""
    if _is_healed(moment, refused):
        return f"{moment.speaker} retries by itself and succeeds once the pods are ready."
    following = moment.rehearsal.steps[moment.index + 1] if moment.index + 1 < len(moment.rehearsal.steps) else None
    if following is not None and all(map(is_record, refused)) and following.outcome == "failed":
        pending = PENDING[moment.ended.action]
        return f'The release stays {pending}. The next {following.action} fails: "{following.error.strip()}"'
    for index, ended in enumerate(moment.rehearsal.steps[moment.index + 1 :], start=moment.index + 1):
        if any(ref in ended.created for ref in refused):
            return (
                f"The next {ended.action} creates {'it' if len(refused) == 1 else 'them'}, because the pods are ready "
                "by then, so the failure looks random."
            )
        if ended.outcome != "ok" and index == moment.index + 1:
            return f"The next {ended.action} {'hangs' if ended.outcome == 'hung' else 'fails'}."
    return ""


RULE = Rule("ST501", "webhook-not-ready-race", check)


def _order_of_kinds(rehearsal: Rehearsal, event: Event) -> str:
    if event.actor != "helm":
        return ORDERS.get(rehearsal.label, "")
    # Every engine that embeds Helm embeds Helm 4.
    return ORDER_OF_HELM_3 if rehearsal.engine.name == "helm" and rehearsal.engine.major == "3" else ORDER_OF_HELM_4
