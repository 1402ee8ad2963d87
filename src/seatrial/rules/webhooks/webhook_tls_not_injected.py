"""A webhook is asked before anybody has written the certificate authority by which the API server knows its backend.

## What happens
A chart that cannot know the certificate of its webhook leaves `caBundle` empty and has it written later: by a hook
Job (`kube-webhook-certgen`), by cert-manager's injector, or by the program itself. Until then every call fails with
`x509: certificate signed by unknown authority`, however ready the backend is, and a webhook that may not be ignored
refuses whatever it is about. A Job that is a post-install hook runs after everything else of the release: objects of
the same release that the webhook is about never pass a first install, nor, where the Job has failed, any upgrade.

A placeholder (`caBundle: Cg==`, `caBundle: ""`) is worse than none. Helm then owns the field. Helm 3 puts the
placeholder back with every upgrade, and the webhook fails until someone writes the bundle again. Helm 4 applies it,
finds that someone else has written the field since, and the upgrade fails with a conflict.

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
Make objects that the webhook is about in a release of their own, or behind the Job that writes the bundle. Leave
`caBundle` out altogether. Let the Job run after upgrades too (`post-install,post-upgrade`), or have cert-manager
inject the authority. With Pulumi, `pulumi.com/waitFor: "jsonpath={.webhooks[*].clientConfig.caBundle}"` on the
configuration has it wait until the bundle is there.

## Fix safety
Taking a placeholder away is safe with Helm 3 from the next upgrade on. With Helm 4 the field stays with whoever wrote
it, which is what is wanted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from seatrial.evidence.moment import Moment, found
from seatrial.evidence.webhooks.calls import CONFIGURATIONS, Call, named, outcome_of, refused_by_cause
from seatrial.helm import hooks
from seatrial.kinds.webhooks.cabundle import INJECTOR, has_certificate, wants_injection
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case, Resource
from seatrial.model.resource import Body, Pointer, Ref, dig, listed
from seatrial.model.timeline import Event, Rehearsal
from seatrial.phrases.outcome import revisions

WAITED_FOR = 'pulumi.com/waitFor: "jsonpath={.webhooks[*].clientConfig.caBundle}" on the configuration has it wait.'
OVERWRITTEN_BY_HELM = (
    "Helm 4 applies the placeholder as its own and may not overwrite what another has written; --force-conflicts "
    "would, and no call could be made until the bundle is written again. Helm 3 does that with every upgrade, without "
    "a word."
)
OVERWRITES = {
    "kubectl": "kubectl applies the placeholder as its own and may not overwrite what another has written; "
    "--force-conflicts would, and no call could be made until the bundle is written again. Without --server-side it "
    "does so whenever the placeholder is not what is there, without a word.",
    "Pulumi": "Pulumi applies the placeholder as its own and may not overwrite what another has written; with "
    'pulumi.com/patchForce: "true" it would, and no call could be made until the bundle is written again.',
}
CONFLICT = ".clientConfig.caBundle"


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    for calls in refused_by_cause(rehearsal, case, "authority").values():
        yield _too_early(rehearsal, case, calls)
    seen: set[Ref] = set()
    for event in rehearsal.timeline:
        refused = event.object.kind in CONFIGURATIONS and event.effect == "refused"
        if refused and CONFLICT in event.message and event.object not in seen:
            seen.add(event.object)
            yield _conflict(rehearsal, case, event)


def _too_early(rehearsal: Rehearsal, case: Case, calls: list[Call]) -> Finding:
    first, step = calls[0], calls[0].event.step
    moment = Moment(rehearsal, case, step)
    webhook = first.webhook
    refused = list(dict.fromkeys(call.event.object for call in calls))
    configuration, refused_one = case.written(step, webhook.configuration), case.written(step, refused[0])
    is_helm = moment.speaker == "Helm"
    writer = _writer(case, step, webhook.configuration) if is_helm else _job(case, step, webhook.configuration)
    client = ("webhooks", webhook.index, "clientConfig")
    return found(
        RULE,
        moment,
        objects=[webhook.configuration],
        damage="failed-deploy",
        message=f'{outcome_of(moment)}: webhook "{webhook.name}" is asked about {named(refused)} before '
        "its caBundle is written",
        details=(
            f'The API server says: "{first.event.message}"',
            _injected(moment, configuration) or _who(moment, webhook.configuration, writer),
            "The pods behind it may well be ready: the API server cannot know that it speaks with the right one.",
            revisions(moment),
        ),
        places=[
            *([configuration.place(*client, "caBundle")] if configuration else ()),
            *([refused_one.place("kind")] if refused_one else ()),
            *([_place(writer)] if writer else ()),
        ],
        evidence=[call.event for call in calls[:3]],
        confirm=_confirm(webhook.configuration),
        certainty="will" if writer is not None and is_helm else "may",
    )


def _conflict(rehearsal: Rehearsal, case: Case, event: Event) -> Finding:
    step, ref, who = event.step, event.object, Moment(rehearsal, case, event.step).speaker
    moment = Moment(rehearsal, case, step)
    resource = case.written(step, ref)
    writer = next(e for e in reversed(rehearsal.timeline[: event.index]) if _writes_bundle(e, ref))
    index = next((i for i, w in enumerate(listed(resource.body, "webhooks")) if _names_bundle(w)), 0) if resource else 0
    return found(
        RULE,
        moment,
        objects=[ref],
        damage="failed-deploy",
        message=f"{outcome_of(moment)}: the {_written_by(who)} writes a placeholder for the caBundle of "
        f"{ref}, which {writer.actor} has filled since",
        details=(
            f'The API server says: "{event.message}"',
            OVERWRITES.get(who, OVERWRITTEN_BY_HELM),
            revisions(moment),
            _next(moment),
        ),
        places=[resource.place("webhooks", index, "clientConfig", "caBundle")] if resource else [],
        evidence=[writer, event],
        confirm=_confirm(ref),
        certainty="will" if writer.actor == INJECTOR or _writer(case, step, ref) else "may",
    )


def _writer(case: Case, step: int, ref: Ref) -> Resource | None:
    """The hook that writes the bundle when all else is made: a post-hook of the release that names its target."""
    release = case.releases[step]
    for resource in release.resources if release else ():
        post = any(event.startswith("post-") for event in hooks.events_of(resource.body))
        if post and resource.ref.kind in ("Job", "Pod") and ref.name in _words_of(resource.body):
            return resource
    return None


def _job(case: Case, step: int, ref: Ref) -> Resource | None:
    """The Job that writes the bundle, where an engine takes hooks for objects like all others."""
    release = case.releases[step]
    jobs = (resource for resource in (release.resources if release else ()) if resource.ref.kind in ("Job", "Pod"))
    return next((job for job in jobs if ref.name in _words_of(job.body)), None)


def _place(writer: Resource) -> Pointer:
    hook = hooks.is_hook(writer.body)
    return writer.place("metadata", "annotations", hooks.HOOK) if hook else writer.place("metadata", "name")


def _words_of(body: Body) -> set[str]:
    """Every word on the command lines of a hook; `--webhook-name=gate` is two."""
    containers = listed(dig(body, "spec", "template", "spec") or body.get("spec"), "containers")
    texts = (str(text) for c in containers for field in ("command", "args") for text in listed(c, field))
    return {word for text in texts for word in re.split(r"[=\s,\"']+", text)}


def _written_by(who: str) -> str:
    return {"kubectl": "folder", "Pulumi": "program"}.get(who, "chart")


def _writes_bundle(event: Event, ref: Ref) -> bool:
    if event.object != ref or event.effect != "changed" or event.actor in ("helm", "kubectl", "pulumi"):
        return False
    return not all(map(_holds, listed(event.before, "webhooks"))) and all(map(_holds, listed(event.after, "webhooks")))


def _holds(webhook: Body) -> bool:
    return has_certificate(str(dig(webhook, "clientConfig", "caBundle") or ""))


def _names_bundle(webhook: Body) -> bool:
    return dig(webhook, "clientConfig", "caBundle") is not None


def _injected(moment: Moment, configuration: Resource | None) -> str:
    """That cert-manager is asked to write it, and who does not wait for that."""
    if configuration is None or not wants_injection(configuration.body):
        return ""
    who = moment.speaker
    waits = f" {WAITED_FOR}" if who == "Pulumi" else ""
    return f"cert-manager is asked to inject it, and had not done so yet: {who} does not wait for that.{waits}"


def _who(moment: Moment, ref: Ref, writer: Resource | None) -> str:
    if writer is None:
        return (
            f"Nothing that was rehearsed writes a caBundle into {ref} before that: no pod runs whose account may, and "
            "no annotation asks cert-manager for it. Whether someone outside the release does cannot be seen from here."
        )
    if moment.speaker != "Helm":
        hook = ", a hook to Helm," if hooks.is_hook(writer.body) else ""
        return (
            f"{writer.ref}{hook} is to write it, and is an object like all others to {moment.speaker}: "
            "nothing that comes after it waits until it is done."
        )
    events = ", ".join(hooks.events_of(writer.body))
    return (
        f"{writer.ref} is to write it, and is a hook of {events}: Helm runs it when all objects of the release are "
        "made, and not at all where one of them was refused. So no further try gets past this either."
    )


def _next(moment: Moment) -> str:
    following = moment.rehearsal.steps[moment.index + 1] if moment.index + 1 < len(moment.rehearsal.steps) else None
    again = following is not None and following.action == "upgrade" and following.outcome == "failed"
    return "Every further upgrade fails alike." if again else ""


def _confirm(ref: Ref) -> str:
    return f"kubectl get {ref.kind.lower()} {ref.name} -o jsonpath='{{.webhooks[*].clientConfig.caBundle}}'"


RULE = Rule("ST502", "webhook-tls-not-injected", check)
