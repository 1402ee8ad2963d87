"""Pods that ask to be injected are made before the injector is registered or answers, and run without it.

## What happens
A mutating webhook changes a pod once, when it is made. Helm makes Deployments before webhook configurations, so the
pods of a release that brings its own injector may be there before the injector is registered; pods of another release
are, when that release comes first. With `failurePolicy: Ignore` a pod also passes while the injector is registered
and does not answer yet. Nothing is refused, nothing is tried again: the pods run without their sidecar, or wait for
an image called `auto`, until someone restarts them. Which of them are missed differs from install to install.

## Example
```yaml
apiVersion: apps/v1
kind: Deployment
spec:
  template:
    metadata: {labels: {sidecar.canal.example/inject: "true"}}    # the injector of the same chart selects this label
```

## Instead
Install the injector as a release of its own, with `--wait`, before everything that relies on it. `failurePolicy:
Fail` (with the injector's own namespace left out) turns a pod that would be missed into one that is tried again.

With Flux that is a HelmRelease, or a Kustomization with `wait: true`, which the others name in `dependsOn`.

To repair what runs: `kubectl rollout restart`.

## Fix safety
`Fail` refuses all pods the webhook is about while the injector is down: see webhook-fail-policy-self-block.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from seatrial.evidence.flux.reconciliations import holder, is_flux
from seatrial.evidence.moment import Moment, found
from seatrial.evidence.webhooks.calls import (
    FAILED,
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
"""The image that Istio's gateways ask for: it exists only after injection."""
MEANT = ("true", "enabled", "yes")
SELECTS = ("In", "Exists")


class Missed(Struct, frozen=True):
    """A pod that was to be injected and was not."""

    event: Event
    webhook: Webhook
    owner: Ref
    ignored: bool
    """Whether the injector was registered, and did not answer."""


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    told: set[Ref] = set()
    for step, _ in enumerate(rehearsal.steps):
        moment = Moment(rehearsal, case, step)
        for missed in _missed(moment):
            if missed.owner not in told:
                told.add(missed.owner)
                yield _finding(moment, missed)


def _missed(moment: Moment) -> Iterator[Missed]:
    """Pods made in a step that are still there, uninjected, when an injector for them is."""
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
    """What is there before anything is taken away again."""
    steps = [i for i, ended in enumerate(rehearsal.steps) if ended.action not in ("uninstall", "delete", "destroy")]
    return state_after(Moment(rehearsal, case, steps[-1])) if steps else {}


def _relies_on(webhook: Webhook, pod: Body, there: dict[Ref, Body]) -> bool:
    """Whether a pod asks for this injection: by a label that is selected, by an annotation, or by its image."""
    namespace = there.get(Ref("Namespace", "", str(pod["metadata"].get("namespace"))))
    if not is_about(webhook, MADE, labels_of(pod), namespace) or backs(pod, there.get(webhook.service)):
        return False
    return _selects(webhook.body.get("objectSelector") or {}) or _asks(pod)


def _selects(selector: Body) -> bool:
    """Whether a selector takes objects that carry something, not only those that lack something."""
    expressions = listed(selector, "matchExpressions")
    return bool(selector.get("matchLabels")) or any(e.get("operator") in SELECTS for e in expressions)


def _asks(pod: Body) -> bool:
    images = [container.get("image") for container in listed(pod, "spec", "containers")]
    annotations = annotations_of(pod).items()
    return TO_BE_INJECTED in images or any(
        "inject" in key and str(value).lower() in MEANT for key, value in annotations
    )


def _passed(rehearsal: Rehearsal, event: Event, webhook: Webhook) -> bool | None:
    """Whether a pod passed because nobody answered (True) or was asked (False); None where it was injected."""
    said = FAILED.search(event.message)
    if said is not None and said["webhook"] == webhook.name:
        return True
    made = [e for e in rehearsal.of_object(webhook.configuration) if e.effect == "created"]
    return False if made and made[0].index > event.index else None


def _owner(pod: Body, there: dict[Ref, Body]) -> Ref:
    """The workload that someone wrote, of which this pod is one."""
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
        message=f'{the}{ended.action} makes pods of {missed.owner} without what webhook "{webhook.name}" adds to them',
        details=(
            _how(moment, missed),
            _image(missed),
            _side_by_side(moment, missed),
            f"Nothing was refused, and nothing injects them later. To repair: {_restart(missed.owner)}",
        ),
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
            f"{configuration} is registered and nothing answers behind {missed.webhook.service} yet. Its failurePolicy "
            f"is Ignore, so {missed.event.object} passed as it was."
        )
    later = next(iter(_registered(moment.rehearsal, missed.webhook))).step
    if later == moment.index:
        who = "Flux" if is_flux(moment.rehearsal) else "Helm"
        return f"{who} makes {missed.owner} before {configuration}, and {missed.event.object} was made in between."
    return f"{configuration} is registered only by the {moment.rehearsal.steps[later].action} of a later step."


def _side_by_side(moment: Moment, missed: Missed) -> str:
    """Which parts of Flux bring the pods and their injector."""
    ended = moment.ended
    own, other = holder(ended, missed.owner), holder(ended, missed.webhook.configuration)
    if own is None or other is None:
        return ""
    if own == other:
        return (
            f"{own} brings both, and webhook configurations come after workloads: give the injector one of its own, "
            "which is waited for, and let this one depend on it."
        )
    return f"{own} brings the one and {other} the other: dependsOn, on one that waits, has the injector come first."


def _image(missed: Missed) -> str:
    images = [container.get("image") for container in listed(missed.event.after, "spec", "containers")]
    if TO_BE_INJECTED not in images:
        return ""
    return 'Its image is "auto", which only the injector replaces. The kubelet says: "Failed to pull image "auto"".'


def _registered(rehearsal: Rehearsal, webhook: Webhook) -> list[Event]:
    return [e for e in rehearsal.of_object(webhook.configuration) if e.effect == "created"][:1]


def _restart(owner: Ref) -> str:
    if owner.kind == "Pod":
        return f"kubectl delete pod {owner.name} -n {owner.namespace}"
    return f"kubectl rollout restart {owner.kind.lower()} {owner.name} -n {owner.namespace}"


RULE = Rule("ST507", "mutation-webhook-not-registered-yet", check)
