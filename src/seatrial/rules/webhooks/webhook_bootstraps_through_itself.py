"""A webhook is called for an object that its own backend needs to start: a deadlock.

## What happens
The backend of a webhook mounts a Secret with its certificate. The Secret comes from a Certificate (or another custom
resource that an operator turns into a Secret), and the webhook also matches Certificates. Helm registers the webhook
and then creates the Certificate: the webhook does not answer, because its pod waits for the Secret, which waits for the
Certificate. The same holds for a ConfigMap, Secret or ServiceAccount that the webhook matches and its backend needs, if
the webhook is registered first: as a hook, or left over from an earlier install.

It looks like a backend that is slow to start, but waiting does not help: retrying fails the same way.

## Example
```yaml
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: guard}
spec: {secretName: guard-tls, issuerRef: {name: guard}, dnsNames: [guard.guard.svc]}
---
kind: ValidatingWebhookConfiguration    # matches certificates in all namespaces
webhooks:
  - name: certificates.guard.example
    clientConfig: {service: {name: guard, namespace: guard}}    # its pod mounts guard-tls
    rules: [{operations: [CREATE], apiGroups: [cert-manager.io], apiVersions: [v1], resources: [certificates]}]
```

## Instead
Exclude the backend's namespace from the webhook (`namespaceSelector` on `kubernetes.io/metadata.name`), or its own
objects (`objectSelector`), or let the backend create its certificate itself.

## Fix safety
A selector that excludes what the backend needs does not affect other objects.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.moment import Moment, found
from seatrial.evidence.webhooks.calls import (
    RejectingCall,
    behind,
    comes_from,
    covers,
    outcome_of,
    refused_by_cause,
    state,
    workload_ref,
)
from seatrial.graph import needs_of
from seatrial.kinds import Need
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case, Resource
from seatrial.model.resource import Ref
from seatrial.model.timeline import Rehearsal
from seatrial.phrases.outcome import revisions


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    for calls in refused_by_cause(rehearsal, case, "bootstrap").values():
        for call in calls:
            refused, backer, need = _circle(rehearsal, case, call)
            if refused is not None and backer is not None and need is not None:
                yield _finding(rehearsal, case, call, refused, backer, need)
                break


def _circle(
    rehearsal: Rehearsal, case: Case, call: RejectingCall
) -> tuple[Resource | None, Resource | None, Need | None]:
    """The rejected object, the backend, and the backend's need that depends on it."""
    step = call.event.step
    refused = case.written(step, call.event.object)
    world = state(rehearsal, call.event)
    comes = comes_from(case, step, refused) if refused else set()
    for body in behind(world, call.webhook.service):
        backer = case.written(step, workload_ref(body))
        need = next((n for n in needs_of(backer) if n.object in comes), None) if backer else None
        if need is not None:
            return refused, backer, need
    return refused, None, None


def _finding(
    rehearsal: Rehearsal, case: Case, call: RejectingCall, refused: Resource, backer: Resource, need: Need
) -> Finding:
    webhook, step = call.webhook, call.event.step
    moment = Moment(rehearsal, case, step)
    configuration = case.written(step, webhook.configuration)
    return found(
        RULE,
        moment,
        objects=[webhook.configuration, refused.ref],
        damage="failed-deploy",
        message=f'{outcome_of(moment)}: webhook "{webhook.name}" blocks {refused.ref} of its own backend',
        details=(
            f'The API server reports: "{call.event.message}"',
            _around(webhook.service, refused.ref, backer, need),
            f"The webhook is called for {covers(webhook)}, and does not exclude its own objects.",
            revisions(moment),
            _again(moment, refused.ref),
        ),
        places=[
            *([configuration.place("webhooks", webhook.index, "namespaceSelector")] if configuration else ()),
            refused.place("metadata", "name"),
            backer.place(*need.field),
        ],
        evidence=[call.event],
        confirm=f"kubectl describe pods -n {backer.ref.namespace}  # FailedMount: {need.object.name} not found",
    )


def _around(service: Ref, refused: Ref, backer: Resource, need: Need) -> str:
    made = "" if need.object == refused else f", which comes from {refused}"
    return f"{backer.ref} is behind {service} and cannot start without {need.object}{made}."


def _again(moment: Moment, ref: Ref) -> str:
    following = moment.rehearsal.steps[moment.index + 1] if moment.index + 1 < len(moment.rehearsal.steps) else None
    if following is None or following.action not in ("install", "upgrade"):
        return ""
    if ref in following.created:
        return (
            f"The next {following.action} succeeds only because what the backend needs was assumed to exist; without "
            "it, every retry fails the same way."
        )
    return f"The next {following.action} fails the same way." if following.outcome != "ok" else ""


RULE = Rule("ST504", "webhook-bootstraps-through-itself", check)
