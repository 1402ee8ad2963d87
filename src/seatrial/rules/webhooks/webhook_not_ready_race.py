"""An object is made while nothing answers yet for the webhook that must be asked about it, and is refused.

## What happens
A webhook configuration counts from the moment it is stored. What answers for it is a pod, which has to be scheduled,
pulled, started and found ready. Whatever the webhook is about and is written in between is refused, unless its
`failurePolicy` is `Ignore` (absent means `Fail`).

Helm sends the objects of a release one kind after the other and waits for none of them. `--wait` does not help: it
waits when everything has been made. Helm 4 makes webhook configurations right behind the built-in kinds, so every
custom resource of the release comes after them. Helm 3 does not know their kind and sorts it among the custom ones by
name, so there it depends on how a kind is called. Built-in kinds of the same release come before, in both.

Trying again usually works, which is why this is taken for bad luck. Not so where the webhook is about Secrets: Helm
keeps its records in them. It then cannot write down that the install is done, says that it is, and every upgrade
fails with `another operation (install/upgrade/rollback) is in progress`.

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
kind: Gate                                                             # of the same chart as well
```

## Instead
Put the custom resources into a release of their own that is installed when the first one, installed with `--wait`, is
there. Or make them post-install hooks behind a hook Job that waits for the webhook to answer. That a pod is ready
does not always mean that its webhook is: some serve before they have their certificate.

## Fix safety
Custom resources that become hooks are no longer owned by the release: on a release that is installed this is a
release-to-hook flip, which deletes them. `failurePolicy: Ignore` lets through what the webhook is there to refuse.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.flux.reconciliations import holder, is_flux
from seatrial.evidence.moment import Moment, found
from seatrial.evidence.pulumi.programs import is_pulumi, unordered
from seatrial.evidence.webhooks.calls import (
    Call,
    Webhook,
    is_record,
    named,
    outcome_of,
    refused_by_cause,
    registered,
    state,
)
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case
from seatrial.model.resource import Ref
from seatrial.model.timeline import Rehearsal
from seatrial.phrases.outcome import revisions

PENDING = {"install": "pending-install", "upgrade": "pending-upgrade", "rollback": "pending-rollback"}


HELM_WAITS = "and waits for nothing in between; --wait waits only when all is made."
ORDERS = {
    "helm@4": f"Helm 4 makes webhook configurations before all custom kinds, {HELM_WAITS}",
    "helm@3": f"Helm 3 makes webhook configurations and custom kinds in the order of their kinds' names, {HELM_WAITS}",
    "argocd": "Argo CD applies webhook configurations and custom kinds of one wave in the order of their names, and "
    "waits for health only when the whole wave is applied.",
    "kubectl": "kubectl applies objects in the order in which they stand in the files, and waits for nothing.",
    "pulumi": "Pulumi makes at once what does not depend on each other.",
    "flux": "Flux tries all objects of a Kustomization before it applies any of them, webhook configurations last.",
}
"""What puts the one before the other, by engine."""


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    unknown = refused_by_cause(rehearsal, case, "authority")
    told = {one.ref for one in unordered(rehearsal, case)}  # By the rule that knows why nothing orders them.
    for configuration, refused in refused_by_cause(rehearsal, case, "unready").items():
        calls = [call for call in refused if call.event.object not in told]
        if calls and configuration not in unknown:  # Its backend would be of no use if it were ready.
            yield _finding(rehearsal, case, calls)


def _finding(rehearsal: Rehearsal, case: Case, calls: list[Call]) -> Finding:
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
            f'The API server says: "{first.event.message}"',
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
        f"kubernetes.io/service-name={webhook.service.name} -w  # meanwhile: no endpoint is ready",
    )


def _message(moment: Moment, refused: list[Ref], webhook: Webhook) -> str:
    if all(map(is_record, refused)):
        return (
            f"{outcome_of(moment)}, and Helm cannot write that down: nothing answers yet for webhook "
            f'"{webhook.name}", which is about its own records'
        )
    what = [ref for ref in refused if not is_record(ref)]
    return f'{outcome_of(moment)}: {named(what)} is made while nothing answers for webhook "{webhook.name}" yet'


def _order(rehearsal: Rehearsal, case: Case, call: Call) -> str:
    event, configuration = call.event, call.webhook.configuration
    made = registered(rehearsal, call)
    if made is not None and made.step == event.step and is_pulumi(rehearsal):
        return (
            f"{configuration} is registered in the same up, and the pods behind {call.webhook.service} have not "
            "started. Nothing in the program orders the two, so Pulumi makes both as soon as it can. It tries a "
            "creation again only while the kind or the namespace is not there: the failure of a webhook is final."
        )
    apart = _apart(Moment(rehearsal, case, event.step), event.object, configuration)
    if made is not None and made.step == event.step and apart:
        return (
            f"{configuration} is registered moments before, and the pods behind {call.webhook.service} have not "
            f"started. {apart[0]} does not wait for those of {apart[1]}: Flux works on both side by side."
        )
    if made is not None and made.step == event.step:
        # Whatever engine has a Helm in it has a Helm 4.
        engine = "helm@4" if event.actor == "helm" and rehearsal.engine.name != "helm" else str(rehearsal.engine)
        order = next((words for begins, words in ORDERS.items() if engine.startswith(begins)), "")
        order = order.replace("--wait waits", "Flux waits") if is_flux(rehearsal) else order
        return (
            f"{configuration} is registered moments before, in the same {rehearsal.steps[event.step].action}, and the "
            f"pods behind {call.webhook.service} have not started. {order}".rstrip()
        )
    if call.webhook.service not in state(rehearsal, event):
        return f"{configuration} is registered, and {call.webhook.service} is not made yet."
    earlier = rehearsal.steps[made.step] if made is not None and made.step >= 0 else None
    whose = f"Release {earlier.release} was not waited for" if earlier else "What answers for it was not waited for"
    return f"{configuration} is registered, and the pods behind {call.webhook.service} have not started. {whose}."


def _apart(moment: Moment, ref: Ref, configuration: Ref) -> tuple[Ref, Ref] | None:
    """Who of Flux's brings the one, and who the other, where these are two."""
    ended = moment.ended
    own, other = holder(ended, ref), holder(ended, configuration)
    return (own, other) if own and other and own != other else None


def _is_healed(moment: Moment, refused: list[Ref]) -> bool:
    """Whether Flux tried again by itself, and all is there in the end."""
    ended = moment.ended
    return bool(ended.reconciled) and ended.outcome == "ok" and all(ref in ended.created for ref in refused)


def _again(moment: Moment, refused: list[Ref]) -> str:
    """What the engine, or the steps after it, did with what was refused."""
    if _is_healed(moment, refused):
        return "It is made at a later attempt, which Flux begins by itself: the pods have started by then."
    following = moment.rehearsal.steps[moment.index + 1] if moment.index + 1 < len(moment.rehearsal.steps) else None
    if following is not None and all(map(is_record, refused)) and following.outcome == "failed":
        pending = PENDING[moment.ended.action]
        return f'The release stays {pending}. The {following.action} after it fails: "{following.error.strip()}"'
    for index, ended in enumerate(moment.rehearsal.steps[moment.index + 1 :], start=moment.index + 1):
        if any(ref in ended.created for ref in refused):
            return (
                f"The {ended.action} after it makes {'it' if len(refused) == 1 else 'them'}: the pods have started by "
                "then. That is why trying again works."
            )
        if ended.outcome != "ok" and index == moment.index + 1:
            return f"The {ended.action} after it {ended.outcome}."
    return ""


RULE = Rule("ST501", "webhook-not-ready-race", check)
