"""A webhook configuration outlives what answers for it, and refuses everything that it is about from then on.

## What happens
`helm uninstall` deletes what the manifest of the last revision lists. A webhook configuration that is a hook, that
has `helm.sh/resource-policy: keep`, or that a program registered while it ran is not listed: it stays, the Service
and the pods behind it go. If it may not be ignored (`failurePolicy` absent means `Fail`), every write it is about is
refused with `service "..." not found`, in all namespaces it covers and whoever writes. Installing the chart again may
fail for the same reason: by what it left itself.

The words name a Service, and one looks for a Service that ought to be there. There ought not.

## Example
```yaml
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata:
  name: guard
  annotations:
    helm.sh/hook: post-install,post-upgrade    # so that the backend is up first: and uninstall does not know it
```

## Instead
A plain object of the release: Helm 4 deletes webhook configurations before everything else, Helm 3 last but surely.
Where it has to be a hook, a post-delete hook Job that deletes it. What a program registers at run time it has to take
away itself, in a pre-delete hook; whether it does cannot be read from a chart.

## Fix safety
A configuration that becomes a plain object is a hook-to-release flip for those who have it: adopt it first, or delete
it (`kubectl delete validatingwebhookconfiguration NAME`), which only lets through what the webhook would have
refused.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.moment import Moment, found, moments
from seatrial.evidence.webhooks.calls import (
    Call,
    Webhook,
    covers,
    named,
    outcome_of,
    refused_by_cause,
    state_after,
    webhooks_in,
)
from seatrial.helm import hooks
from seatrial.model.finding import Damage, Finding, Rule
from seatrial.model.release import Case, Resource
from seatrial.model.resource import Ref, annotations_of, listed
from seatrial.model.timeline import Event, Rehearsal
from seatrial.phrases.objects import BUILT_IN_GROUPS

DELETE_EVENTS = ("pre-delete", "post-delete")


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    told: set[Ref] = set()
    for moment in moments(rehearsal, case):
        if moment.ended.action != "uninstall" or moment.ended.outcome != "ok":
            continue
        for webhook in webhooks_in(state_after(moment)):
            ref = webhook.configuration
            if webhook.refuses and webhook.service in moment.ended.deleted and ref not in told:
                told.add(ref)
                yield _left(moment, webhook)
    for ref, calls in refused_by_cause(rehearsal, case, "stale").items():
        if ref not in told:
            yield _met(rehearsal, case, calls)


def _left(moment: Moment, webhook: Webhook) -> Finding:
    ref = webhook.configuration
    resource = moment.case.written(moment.index, ref)
    cleaner = _cleaner(moment.case, moment.index)
    return found(
        RULE,
        moment,
        objects=[ref],
        damage=_damage(webhook),
        message=f"helm uninstall leaves {ref} behind without what answers for it: from then on "
        f"{covers(webhook)} is refused",
        details=(
            f'Whoever tries reads: "{_words(webhook)}"',
            _why(resource),
            _later(moment.rehearsal, moment.case, ref),
            f"{cleaner.ref} is a hook of the uninstall: what its program does cannot be seen, and it may be there for "
            "this."
            if cleaner
            else "",
            f"To end it: kubectl delete {ref.kind.lower()} {ref.name}",
        ),
        places=[resource.place("metadata", "annotations", _kept_by(resource))] if resource else [],
        evidence=[*_made(moment, ref), *_went(moment, webhook.service)],
        confirm=f"kubectl get {ref.kind.lower()} {ref.name}  # after helm uninstall",
        certainty="may" if cleaner else "will",
    )


def _met(rehearsal: Rehearsal, case: Case, calls: list[Call]) -> Finding:
    first, step = calls[0], calls[0].event.step
    moment = Moment(rehearsal, case, step)
    webhook = first.webhook
    refused = list(dict.fromkeys(call.event.object for call in calls))
    written = case.written(step, refused[0])
    return found(
        RULE,
        moment,
        objects=[webhook.configuration],
        damage="failed-deploy",
        message=f"{outcome_of(moment)}: {named(refused)} is refused for {webhook.configuration}, which is in "
        "the cluster without what answers for it",
        details=(
            f'The API server says: "{first.event.message}"',
            _what_is_gone(moment, webhook.service, refused[0]),
            f"To end it: kubectl delete {webhook.configuration.kind.lower()} {webhook.configuration.name}",
        ),
        places=[written.place("kind")] if written else [],
        evidence=[call.event for call in calls[:3]],
        confirm=f"kubectl get service -n {webhook.service.namespace} {webhook.service.name}",
    )


def _damage(webhook: Webhook) -> Damage:
    """Objects of the chart's own kinds are missed by nobody when it is gone; those of Kubernetes by everyone."""
    groups = {str(group) for rule in listed(webhook.body, "rules") for group in listed(rule, "apiGroups")}
    return "outage" if "*" in groups or groups & BUILT_IN_GROUPS else "failed-deploy"


def _words(webhook: Webhook) -> str:
    service = (webhook.body.get("clientConfig") or {}).get("service") or {}
    path = str(service.get("path") or "").lstrip("/")
    host = f"{service.get('name')}.{service.get('namespace')}.svc:{service.get('port') or 443}"
    url = f"https://{host}/{path}?timeout={webhook.body.get('timeoutSeconds') or 10}s"
    return (
        f'Internal error occurred: failed calling webhook "{webhook.name}": failed to call webhook: Post "{url}": '
        f'service "{service.get("name")}" not found'
    )


def _why(resource: Resource | None) -> str:
    if resource is None:
        return "No release of this trial lists it: someone registered it while the release ran."
    if hooks.is_hook(resource.body):
        return "It is a hook, and uninstall deletes only what the manifest of the release lists."
    if hooks.RESOURCE_POLICY in annotations_of(resource.body):
        policy = annotations_of(resource.body)[hooks.RESOURCE_POLICY]
        return f"It has {hooks.RESOURCE_POLICY}: {policy}, so uninstall leaves it."
    return ""


def _kept_by(resource: Resource) -> str:
    return hooks.HOOK if hooks.is_hook(resource.body) else hooks.RESOURCE_POLICY


def _later(rehearsal: Rehearsal, case: Case, ref: Ref) -> str:
    """What of the later steps fails for it."""
    for call in refused_by_cause(rehearsal, case, "stale").get(ref, ()):
        ended = rehearsal.steps[call.event.step]
        return f'The {ended.action} after it is refused {call.event.object}: "{call.event.message}"'
    return ""


def _cleaner(case: Case, step: int) -> Resource | None:
    release = next((r for r in reversed(case.releases[: step + 1]) if r is not None), None)
    for resource in release.resources if release else ():
        runs = any(event in hooks.events_of(resource.body) for event in DELETE_EVENTS)
        if runs and resource.ref.kind in ("Job", "Pod"):
            return resource
    return None


def _made(moment: Moment, ref: Ref) -> list[Event]:
    return [e for e in moment.rehearsal.of_object(ref) if e.effect == "created" and e.step <= moment.index][-1:]


def _went(moment: Moment, service: Ref) -> list[Event]:
    return [e for e in moment.events() if e.object == service and e.effect == "deleted"][:1]


def _what_is_gone(moment: Moment, service: Ref, refused: Ref) -> str:
    if service in moment.ended.deleted:
        return (
            f"The same {moment.ended.action} has deleted {service} before: nothing says that {refused} "
            "depends on it, and so the one goes as early as the other."
        )
    return (
        f"{service} is not there and none of the releases brings it: the configuration was left behind by something "
        "that is gone."
    )


RULE = Rule("ST506", "stale-webhook-after-uninstall", check)
