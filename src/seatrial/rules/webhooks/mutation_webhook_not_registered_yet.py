"""Pods that request injection are created before the injector is registered or answers, and run without it.

## What happens
A mutating webhook changes a pod once, when it is created. Helm creates Deployments before webhook configurations, so
the pods of a release with its own injector may exist before the injector is registered; so do the pods of another
release that is installed first. With `failurePolicy: Ignore` a pod also passes while the injector is registered and
does not answer yet. Nothing is rejected or retried: the pods run without their sidecar, or wait for an image named
`auto`, until they are restarted. Which pods are affected differs between installs.

## Example
```yaml
apiVersion: apps/v1
kind: Deployment
spec:
  template:
    metadata: {labels: {sidecar.canal.example/inject: "true"}}    # the injector of the same chart selects this label
```

## Instead
Install the injector as its own release, with `--wait`, before everything that relies on it. With `failurePolicy: Fail`
(and the injector's own namespace excluded) a pod is rejected and retried instead of running without injection.

With Flux, use a HelmRelease, or a Kustomization with `wait: true`, that the others name in `dependsOn`.

To repair running pods: `kubectl rollout restart`.

## Fix safety
`Fail` rejects all matching pods while the injector is down: see webhook-fail-policy-self-block.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from seatrial.evidence.flux.reconciliations import holder, is_flux
from seatrial.evidence.moment import Moment, found
from seatrial.evidence.webhooks.calls import (
    Webhook,
    backs,
    is_about,
    state_after,
    webhooks_in,
)
from seatrial.kinds.webhooks.matching import WriteTarget
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case
from seatrial.model.resource import Body, Ref, annotations_of, dig, labels_of, listed
from seatrial.model.timeline import Event, Rehearsal

MADE = WriteTarget("CREATE", "", "v1", "pods", "", namespaced=True)
TO_BE_INJECTED = "auto"
"""The image of Istio gateways: injection replaces it."""
MEANT = ("true", "enabled", "yes")
INJECTORS = {
    "linkerd.io/inject": "proxy-injector.linkerd.io",
    "sidecar.istio.io/inject": "sidecar-injector.istio.io",
    "vault.hashicorp.com/agent-inject": "vault.hashicorp.com",
    "consul.hashicorp.com/connect-inject": "connect-injector.consul.hashicorp.com",
}
"""Annotations and how the name of the webhook ends that they request. Others may request any."""
SELECTS = ("In", "Exists")


class Missed(Struct, frozen=True):
    """A pod that requested injection and did not get it."""

    event: Event
    webhook: Webhook
    owner: Ref
    ignored: bool
    """Whether the injector was registered and did not answer."""


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    reported: set[Ref] = set()
    for step, _ in enumerate(rehearsal.steps):
        moment = Moment(rehearsal, case, step)
        for missed in _missed(moment):
            if missed.owner not in reported:
                reported.add(missed.owner)
                yield _finding(moment, missed)


def _missed(moment: Moment) -> Iterator[Missed]:
    """Pods created in a step that still exist, uninjected, when their injector does."""
    ended = _at_the_end(moment.rehearsal, moment.case)
    webhooks = [w for w in webhooks_in(ended) if w.configuration.kind == "MutatingWebhookConfiguration"]
    if not webhooks:
        return
    there = state_after(moment)
    for event in moment.events():
        pod = event.after
        if event.object.kind != "Pod" or event.effect != "created" or pod is None or event.object not in there:
            continue
        for webhook in webhooks:
            if _relies_on(webhook, pod, there) and (ignored := _passed(moment.rehearsal, event, webhook)) is not None:
                yield Missed(event, webhook, _owner(pod, there), ignored)
                break


def _at_the_end(rehearsal: Rehearsal, case: Case) -> dict[Ref, Body]:
    """The cluster before the first step that removes anything."""
    steps = [i for i, ended in enumerate(rehearsal.steps) if ended.action not in ("uninstall", "delete", "destroy")]
    return state_after(Moment(rehearsal, case, steps[-1])) if steps else {}


def _relies_on(webhook: Webhook, pod: Body, there: dict[Ref, Body]) -> bool:
    """Whether a pod requests this injection: by a selected label, an annotation, or its image."""
    namespace = there.get(Ref("Namespace", "", str(pod["metadata"].get("namespace"))))
    if not is_about(webhook, MADE, labels_of(pod), namespace) or backs(pod, there.get(webhook.service)):
        return False
    return _selects(webhook.body.get("objectSelector") or {}) or _asks(pod, webhook.name)


def _selects(selector: Body) -> bool:
    """Whether a selector requires a label, not only the absence of one."""
    expressions = listed(selector, "matchExpressions")
    return bool(selector.get("matchLabels")) or any(e.get("operator") in SELECTS for e in expressions)


def _asks(pod: Body, webhook: str) -> bool:
    images = [container.get("image") for container in listed(pod, "spec", "containers")]
    annotations = annotations_of(pod).items()
    return TO_BE_INJECTED in images or any(
        "inject" in key and str(value).lower() in MEANT and webhook.endswith(INJECTORS.get(key, ""))
        for key, value in annotations
    )


def _passed(rehearsal: Rehearsal, event: Event, webhook: Webhook) -> bool | None:
    """True if the webhook did not answer, False if it was not registered, None if the pod was injected."""
    if webhook.name in event.unanswered:
        return True
    made = [e for e in rehearsal.of_object(webhook.configuration) if e.effect == "created"]
    return False if made and made[0].index > event.index else None


def _owner(pod: Body, there: dict[Ref, Body]) -> Ref:
    """The top-level workload that owns this pod."""
    body: Body | None = pod
    ref = Ref("Pod", str(pod["metadata"].get("namespace") or ""), str(pod["metadata"]["name"]))
    while body is not None:
        owner = next((o for o in dig(body, "metadata", "ownerReferences") or () if o.get("controller")), None)
        if owner is None:
            return ref
        group = str(owner.get("apiVersion") or "").rpartition("/")[0]
        ref = Ref(str(owner.get("kind")), ref.namespace, str(owner.get("name")), group)
        body = there.get(ref)
    return ref


def _finding(moment: Moment, missed: Missed) -> Finding:
    webhook, workload = missed.webhook, moment.case.written(moment.index, missed.owner)
    ended, configuration = moment.ended, moment.case.written(len(moment.case.releases) - 1, webhook.configuration)
    the = "the " if is_flux(moment.rehearsal) else ""
    return found(
        RULE,
        moment,
        objects=[missed.owner],
        damage="failed-deploy",
        message=f'{the}{ended.action} creates pods of {missed.owner} without the injection of webhook "{webhook.name}"',
        details=(
            _how(moment, missed),
            _image(missed),
            _side_by_side(moment, missed),
            "There is no error, and nothing injects them later.",
        ),
        recover=_restart(missed.owner),
        places=[
            *([workload.place("spec", "template", "metadata")] if workload else ()),
            *([configuration.place("webhooks", webhook.index, "name")] if configuration else ()),
        ],
        evidence=[missed.event, *_registered(moment.rehearsal, webhook)],
        confirm=f"kubectl get pods -n {missed.owner.namespace} -o jsonpath="
        '\'{range .items[*]}{.metadata.name}{" "}{.spec.containers[*].name}{"\\n"}{end}\'',
    )


def _how(moment: Moment, missed: Missed) -> str:
    configuration = missed.webhook.configuration
    if missed.ignored:
        return (
            f"{configuration} is registered and {missed.webhook.service} does not answer yet. Its failurePolicy is "
            f"Ignore, so {missed.event.object} passed unchanged."
        )
    later = next(iter(_registered(moment.rehearsal, missed.webhook))).step
    if later == moment.index:
        who = "Flux" if is_flux(moment.rehearsal) else "Helm"
        return f"{who} creates {missed.owner} before {configuration}; {missed.event.object} was created in between."
    return f"{configuration} is only registered by the {moment.rehearsal.steps[later].action} of a later step."


def _side_by_side(moment: Moment, missed: Missed) -> str:
    """Which Flux objects contain the pods and their injector."""
    ended = moment.ended
    own, other = holder(ended, missed.owner), holder(ended, missed.webhook.configuration)
    if own is None or other is None:
        return ""
    if own == other:
        return (
            f"{own} contains both, and webhook configurations come after workloads: move the injector into its own "
            "with wait: true, and let this one depend on it."
        )
    return f"{own} has the pods and {other} the injector: let the first depend on the second (dependsOn, with wait)."


def _image(missed: Missed) -> str:
    images = [container.get("image") for container in listed(missed.event.after, "spec", "containers")]
    if TO_BE_INJECTED not in images:
        return ""
    return 'Its image is "auto", which only the injector replaces. The kubelet reports: "Failed to pull image "auto"".'


def _registered(rehearsal: Rehearsal, webhook: Webhook) -> list[Event]:
    return [e for e in rehearsal.of_object(webhook.configuration) if e.effect == "created"][:1]


def _restart(owner: Ref) -> str:
    if owner.kind == "Pod":
        return f"kubectl delete pod {owner.name} -n {owner.namespace}"
    return f"kubectl rollout restart {owner.kind.lower()} {owner.name} -n {owner.namespace}"


RULE = Rule("ST507", "mutation-webhook-not-registered-yet", check)
