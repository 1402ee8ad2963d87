"""A webhook configuration stays without its backend, and every write that it matches is rejected.

## What happens
`helm uninstall` deletes what the manifest of the last revision lists. A webhook configuration that is a hook, has
`helm.sh/resource-policy: keep`, or was registered by a program at run time is not deleted: it stays, and its Service
and pods are deleted. With `failurePolicy: Fail` (the default) every matching write is rejected with `service "..." not
found`, in all namespaces it covers, for all clients. Even reinstalling the chart may fail because of it.

The error names a Service, so people look for a missing Service. The cause is the webhook configuration, which should
have been deleted.

## Example
```yaml
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata:
  name: guard
  annotations:
    helm.sh/hook: post-install,post-upgrade    # so that the backend is up first; uninstall does not delete hooks
```

## Instead
Make it a regular resource: Helm 4 deletes webhook configurations first, Helm 3 last. If it must be a hook, add a
post-delete hook Job that deletes it. A program that registers a configuration at run time must delete it in a
pre-delete hook; a chart does not show whether it does.

## Fix safety
For existing releases, a hook that becomes a regular resource is a hook-to-release flip: adopt it first, or delete it
(`kubectl delete validatingwebhookconfiguration NAME`). Until it is recreated, matching writes are not checked.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.moment import Moment, found, moments
from seatrial.evidence.webhooks.calls import (
    RejectingCall,
    Webhook,
    covers,
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
from seatrial.phrases.outcome import first_named

DELETE_EVENTS = ("pre-delete", "post-delete")


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    reported: set[Ref] = set()
    for moment in moments(rehearsal, case):
        if moment.ended.action != "uninstall" or moment.ended.outcome != "ok":
            continue
        for webhook in webhooks_in(state_after(moment)):
            ref = webhook.configuration
            if webhook.refuses and webhook.service in moment.ended.deleted and ref not in reported:
                reported.add(ref)
                yield _left(moment, webhook)
    for ref, calls in refused_by_cause(rehearsal, case, "stale").items():
        if ref not in reported:
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
        message=f"helm uninstall leaves {ref} behind without its backend",
        details=(
            f"From then on {covers(webhook)} is rejected.",
            f'Clients get: "{_words(webhook)}"',
            _why(resource),
            _later(moment.rehearsal, moment.case, ref),
            f"{cleaner.ref} is a hook of the uninstall and may delete it: its program cannot be read from here."
            if cleaner
            else "",
        ),
        recover=f"kubectl delete {ref.kind.lower()} {ref.name}",
        places=[resource.place("metadata", "annotations", _kept_by(resource))] if resource else [],
        evidence=[*_made(moment, ref), *_went(moment, webhook.service)],
        confirm=f"kubectl get {ref.kind.lower()} {ref.name}  # after helm uninstall",
        certainty="may" if cleaner else "will",
    )


def _met(rehearsal: Rehearsal, case: Case, calls: list[RejectingCall]) -> Finding:
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
        message=f"{outcome_of(moment)}: {webhook.configuration} has no backend for {first_named(refused)}",
        details=(
            f'The API server reports: "{first.event.message}"',
            _what_is_gone(moment, webhook.service, refused[0]),
        ),
        recover=f"kubectl delete {webhook.configuration.kind.lower()} {webhook.configuration.name}",
        places=[written.place("kind")] if written else [],
        evidence=[call.event for call in calls[:3]],
        confirm=f"kubectl get service -n {webhook.service.namespace} {webhook.service.name}",
    )


def _damage(webhook: Webhook) -> Damage:
    """Rejected built-in kinds affect the whole cluster; the chart's own kinds are gone with the chart."""
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
        return "No release of this trial contains it: it was registered while the release ran."
    if hooks.is_hook(resource.body):
        return "It is a hook, and uninstall deletes only what the release manifest lists."
    if hooks.RESOURCE_POLICY in annotations_of(resource.body):
        policy = annotations_of(resource.body)[hooks.RESOURCE_POLICY]
        return f"It has {hooks.RESOURCE_POLICY}: {policy}, so uninstall leaves it."
    return ""


def _kept_by(resource: Resource) -> str:
    return hooks.HOOK if hooks.is_hook(resource.body) else hooks.RESOURCE_POLICY


def _later(rehearsal: Rehearsal, case: Case, ref: Ref) -> str:
    """The first later step that fails because of it."""
    for call in refused_by_cause(rehearsal, case, "stale").get(ref, ()):
        ended = rehearsal.steps[call.event.step]
        return f'The next {ended.action} fails at {call.event.object}: "{call.event.message}"'
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
        return f"The same {moment.ended.action} deletes {service} first: nothing declares that {refused} depends on it."
    return f"{service} does not exist and no release has it: the configuration was left behind by something else."


RULE = Rule("ST506", "stale-webhook-after-uninstall", check)
