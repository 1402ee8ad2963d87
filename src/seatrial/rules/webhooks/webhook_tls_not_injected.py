"""A webhook is called before its `caBundle` is written, so the API server rejects the connection.

## What happens
A chart that does not know the certificate of its webhook leaves `caBundle` empty, to be filled in later: by a hook Job
(`kube-webhook-certgen`), by cert-manager's injector, or by the program itself. Until then every call fails with `x509:
certificate signed by unknown authority`, even if the backend is ready, and with `failurePolicy: Fail` every matching
write is rejected. A post-install hook Job runs after everything else of the release: if the release contains a matching
object, the first install always fails, and so does every upgrade until the Job has succeeded.

A placeholder (`caBundle: Cg==`, `caBundle: ""`) is worse than none, because Helm then owns the field. Helm 3 restores
the placeholder on every upgrade, and the webhook fails until the bundle is written again. Helm 4 applies it, finds that
another client has changed the field, and the upgrade fails with a conflict.

## Example
```yaml
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: gate}
webhooks:
  - name: gates.canal.example
    clientConfig:
      service: {name: gate, namespace: canal}    # caBundle comes from a post-install hook Job
```

## Instead
Create matching objects in their own release, or after the Job that writes the bundle. Omit `caBundle` entirely. Run the
Job after upgrades too (`post-install,post-upgrade`), or let cert-manager inject the CA. With Pulumi,
`pulumi.com/waitFor: "jsonpath={.webhooks[*].clientConfig.caBundle}"` on the configuration waits for the bundle.

## Fix safety
With Helm 3 the upgrade that removes the placeholder also removes the bundle once (the field left the chart); later
upgrades leave it alone. With Helm 4 the field stays with its last writer, which is what you want.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from seatrial.evidence.moment import Moment, found
from seatrial.evidence.webhooks.bundles import is_bundle_conflict
from seatrial.evidence.webhooks.calls import RejectingCall, outcome_of, refused_by_cause
from seatrial.helm import hooks
from seatrial.kinds.webhooks.cabundle import has_certificate, wants_injection
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case, Resource
from seatrial.model.resource import Body, Path, Pointer, Ref, dig, listed
from seatrial.model.timeline import Event, Rehearsal
from seatrial.phrases.outcome import first_named, revisions

WAITED_FOR = 'pulumi.com/waitFor: "jsonpath={.webhooks[*].clientConfig.caBundle}" on the configuration makes it wait.'
OVERWRITTEN_BY_HELM = (
    "Helm 4 applies the placeholder and gets a conflict, because another field manager owns the value. With "
    "--force-conflicts it overwrites the bundle, and every call fails until the bundle is written again. Helm 3 "
    "overwrites it on every upgrade, without an error."
)
OVERWRITES = {
    "kubectl": "kubectl applies the placeholder and gets a conflict, because another field manager owns the value. "
    "With --force-conflicts it overwrites the bundle, and every call fails until the bundle is written again. Without "
    "--server-side it overwrites the bundle without an error.",
    "Pulumi": "Pulumi applies the placeholder and gets a conflict, because another field manager owns the value. With "
    'pulumi.com/patchForce: "true" it overwrites the bundle, and every call fails until the bundle is written again.',
}
CRD = "CustomResourceDefinition"
CONVERSION = ("spec", "conversion", "webhook", "clientConfig")


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    unready = refused_by_cause(rehearsal, case, "unready")
    for configuration, calls in refused_by_cause(rehearsal, case, "authority").items():
        yield _too_early(rehearsal, case, calls, unready.get(configuration, []))
    seen: set[Ref] = set()
    for event in rehearsal.timeline:
        if event.object not in seen and is_bundle_conflict(event):
            seen.add(event.object)
            yield _conflict(rehearsal, case, event)


def _too_early(rehearsal: Rehearsal, case: Case, calls: list[RejectingCall], unready: list[RejectingCall]) -> Finding:
    """Calls that failed because the CA was missing. `unready`: earlier calls to a backend that was not ready."""
    first, step = calls[0], calls[0].event.step
    moment = Moment(rehearsal, case, step)
    webhook = first.webhook
    refused = list(dict.fromkeys(call.event.object for call in calls))
    configuration, refused_one = case.written(step, webhook.configuration), case.written(step, refused[0])
    is_helm = moment.speaker == "Helm"
    writer = _writer(case, step, webhook.configuration) if is_helm else _job(case, step, webhook.configuration)
    client = ("webhooks", webhook.index, "clientConfig")
    injected = _injected(moment, configuration)
    written = any(_writes_bundle(event, webhook.configuration) for event in rehearsal.timeline)
    never_written = writer is None and not injected and not written
    return found(
        RULE,
        moment,
        objects=[webhook.configuration],
        damage="failed-deploy",
        message=f'{outcome_of(moment)}: webhook "{webhook.name}" lacks its caBundle for {first_named(refused)}',
        details=(
            f'The API server reports: "{first.event.message}"',
            injected or _who(moment, webhook.configuration, writer),
            "Even if its pods are ready, the API server cannot verify their certificate without the CA.",
            revisions(moment),
        ),
        places=[
            *([configuration.place(*client, "caBundle")] if configuration else ()),
            *([refused_one.place("kind")] if refused_one else ()),
            *([_place(writer)] if writer else ()),
        ],
        evidence=[call.event for call in (*unready[:1], *calls[:3])],
        confirm=_confirm(webhook.configuration),
        certainty="will" if writer is not None and is_helm else "likely" if never_written else "may",
        way_out=[_set_it(webhook.configuration)] if never_written else (),
    )


def _set_it(ref: Ref) -> str:
    return (
        f"Set caBundle of {ref} to the CA of the webhook's certificate, or let cert-manager write it (annotation "
        "cert-manager.io/inject-ca-from). If something outside of the release writes it, create what the webhook is "
        "called for later."
    )


def _conflict(rehearsal: Rehearsal, case: Case, event: Event) -> Finding:
    step, ref, who = event.step, event.object, Moment(rehearsal, case, event.step).speaker
    moment = Moment(rehearsal, case, step)
    resource = case.written(step, ref)
    writer = next(
        e
        for e in reversed(rehearsal.timeline[: event.index])
        if e.actor not in rehearsal.actors and _writes_bundle(e, ref)
    )
    return found(
        RULE,
        moment,
        objects=[ref],
        damage="failed-deploy",
        message=f"{outcome_of(moment)}: {ref} sets a placeholder caBundle",
        details=(
            f"The {_written_by(who)} sets it, but {writer.actor} has written the real one.",
            f'The API server reports: "{event.message}"',
            OVERWRITES.get(who, OVERWRITTEN_BY_HELM),
            revisions(moment),
            _next(moment),
        ),
        places=[resource.place(*_bundle_path(resource.body))] if resource else [],
        evidence=[writer, event],
        confirm=_confirm(ref),
        way_out=(
            f"Leave caBundle out of {ref}, at the place above: an empty string is a value too. {writer.actor} then "
            "owns the field alone, and upgrades leave it as it is.",
        ),
        certainty="may" if moment.ended.outcome == "ok" else "will",
    )


def _writer(case: Case, step: int, ref: Ref) -> Resource | None:
    """The hook that writes the bundle at the end: a post-hook whose command line names the configuration."""
    release = case.releases[step]
    for resource in release.resources if release else ():
        post = any(event.startswith("post-") for event in hooks.events_of(resource.body))
        if post and resource.ref.kind in ("Job", "Pod") and ref.name in _words_of(resource.body):
            return resource
    return None


def _job(case: Case, step: int, ref: Ref) -> Resource | None:
    """The Job that writes the bundle, for engines that treat hooks as regular resources."""
    release = case.releases[step]
    jobs = (resource for resource in (release.resources if release else ()) if resource.ref.kind in ("Job", "Pod"))
    return next((job for job in jobs if ref.name in _words_of(job.body)), None)


def _place(writer: Resource) -> Pointer:
    hook = hooks.is_hook(writer.body)
    return writer.place("metadata", "annotations", hooks.HOOK) if hook else writer.place("metadata", "name")


def _words_of(body: Body) -> set[str]:
    """Every word of a hook's command lines; `--webhook-name=gate` is two."""
    containers = listed(dig(body, "spec", "template", "spec") or body.get("spec"), "containers")
    texts = (str(text) for c in containers for field in ("command", "args") for text in listed(c, field))
    return {word for text in texts for word in re.split(r"[=\s,\"']+", text)}


def _written_by(who: str) -> str:
    return {"kubectl": "folder", "Pulumi": "program"}.get(who, "chart")


def _writes_bundle(event: Event, ref: Ref) -> bool:
    if event.object != ref or event.effect != "changed":
        return False
    return not all(map(_holds, _clients(event.before))) and all(map(_holds, _clients(event.after)))


def _clients(body: Body | None) -> list[object]:
    """The clientConfigs of a webhook configuration, or of the conversion of a CRD."""
    if dig(body, "kind") == CRD:
        return [dig(body, *CONVERSION)]
    return [webhook.get("clientConfig") for webhook in listed(body, "webhooks")]


def _holds(client: object) -> bool:
    return has_certificate(str(dig(client, "caBundle") or ""))


def _bundle_path(body: Body) -> Path:
    if body.get("kind") == CRD:
        return (*CONVERSION, "caBundle")
    named = (i for i, client in enumerate(_clients(body)) if dig(client, "caBundle") is not None)
    return ("webhooks", next(named, 0), "clientConfig", "caBundle")


def _injected(moment: Moment, configuration: Resource | None) -> str:
    """Whether cert-manager is to inject the bundle, which the engine does not wait for."""
    if configuration is None or not wants_injection(configuration.body):
        return ""
    who = moment.speaker
    waits = f" {WAITED_FOR}" if who == "Pulumi" else ""
    return f"cert-manager has not injected it yet, and {who} does not wait for that.{waits}"


def _who(moment: Moment, ref: Ref, writer: Resource | None) -> str:
    if writer is None:
        return (
            f"Nothing in the trial writes the caBundle of {ref} before that: no pod runs with a ServiceAccount that "
            "may, and no annotation requests it from cert-manager. Something outside the release may write it."
        )
    if moment.speaker != "Helm":
        hook = " It is a hook only for Helm." if hooks.is_hook(writer.body) else ""
        return f"{writer.ref} writes it.{hook} {moment.speaker} does not wait until {writer.ref} has completed."
    events = ", ".join(hooks.events_of(writer.body))
    return (
        f"{writer.ref} writes it. It is a {events} hook: Helm runs it after all objects are created, and does not run "
        "it if one of them is rejected. Every retry fails the same way."
    )


def _next(moment: Moment) -> str:
    following = moment.rehearsal.steps[moment.index + 1] if moment.index + 1 < len(moment.rehearsal.steps) else None
    again = following is not None and following.action == "upgrade" and following.outcome == "failed"
    return "Every further upgrade fails the same way." if again else ""


def _confirm(ref: Ref) -> str:
    if ref.kind == CRD:
        return f"kubectl get crd {ref.name} -o jsonpath='{{.{'.'.join(CONVERSION)}.caBundle}}'"
    return f"kubectl get {ref.kind.lower()} {ref.name} -o jsonpath='{{.webhooks[*].clientConfig.caBundle}}'"


RULE = Rule("ST502", "webhook-tls-not-injected", check)
