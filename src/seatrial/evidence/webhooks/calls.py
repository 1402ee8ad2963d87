"""Failed webhook calls: which webhook, for which object, and why its backend did not answer.

Each call that was refused has one cause, so that one rule tells of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

from msgspec import Struct

from seatrial import kinds
from seatrial.evidence.flux.reconciliations import is_flux
from seatrial.evidence.history import GOING
from seatrial.evidence.moment import Moment
from seatrial.graph import needs_of
from seatrial.kinds.core.selection import fits
from seatrial.kinds.webhooks import matching
from seatrial.model.refusal import FailedCall
from seatrial.model.release import Case, Resource, once
from seatrial.model.resource import Body, Ref, dig, labels_of, listed, metadata, name_of
from seatrial.model.timeline import Event, Rehearsal

CONFIGURATIONS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
WORKLOADS = ("DaemonSet", "Deployment", "StatefulSet")
NAMES_MAX = 3
EVENTS_BETWEEN = 256
"""How many events apart the live objects are kept."""

Cause = Literal["authority", "stale", "itself", "bootstrap", "rolled", "unready", "tried-again"]
World = dict[Ref, Body]
"""The live objects at some event."""


class Webhook(Struct, frozen=True):
    """One webhook of a configuration, at the time of the call."""

    configuration: Ref
    index: int
    body: Body

    @property
    def name(self) -> str:
        return str(self.body.get("name") or "")

    @property
    def service(self) -> Ref:
        found = dig(self.body, "clientConfig", "service") or {}
        return Ref("Service", str(found.get("namespace") or ""), str(found.get("name") or ""))

    @property
    def refuses(self) -> bool:
        """Whether a failed call rejects the request (failurePolicy Fail)."""
        return self.body.get("failurePolicy") != "Ignore"


class RejectingCall(Struct, frozen=True):
    """A failed call, and the write that it rejected."""

    event: Event
    webhook: Webhook
    cause: Cause


def refused_by_cause(rehearsal: Rehearsal, case: Case, cause: Cause) -> dict[Ref, list[RejectingCall]]:
    """Rejections of one cause, by webhook configuration; only the first step that shows it."""
    found: dict[Ref, list[RejectingCall]] = {}
    for call in _refused(rehearsal, case):
        if call.cause == cause:
            calls = found.setdefault(call.webhook.configuration, [])
            if not calls or calls[0].event.step == call.event.step:
                calls.append(call)
    return found


def webhooks_in(world: World) -> Iterator[Webhook]:
    """Every registered webhook with a Service in the cluster."""
    for ref in sorted(ref for ref in world if ref.kind in CONFIGURATIONS):
        for index, body in enumerate(listed(world[ref], "webhooks")):
            webhook = Webhook(ref, index, body)
            if webhook.service.name:
                yield webhook


def state(rehearsal: Rehearsal, event: Event) -> World:
    """The live objects just before an event."""
    kept = once(rehearsal, "worlds", lambda: [*_worlds(rehearsal)])
    if not kept:
        return {}
    number = min(event.index // EVENTS_BETWEEN, len(kept) - 1)
    world, step = kept[number]
    return _followed(rehearsal.timeline[number * EVENTS_BETWEEN : event.index], dict(world), step)


def state_after(moment: Moment) -> World:
    """The live objects when a step has ended and the cluster has settled."""
    rehearsal, step = moment.rehearsal, moment.index
    found = once(rehearsal, f"world after {step}", lambda: _followed(e for e in rehearsal.timeline if e.step <= step))
    return dict(found)


def behind(world: World, service: Ref) -> Iterator[Body]:
    """The workloads behind a Service."""
    found = world.get(service)
    for ref, body in world.items():
        near = ref.kind in WORKLOADS and ref.namespace == service.namespace
        if near and backs(dig(body, "spec", "template") or {}, found):
            yield body


def backs(template: Body, service: Body | None) -> bool:
    """Whether a Service selects pods of this template."""
    selector = dig(service, "spec", "selector") or {}
    return bool(selector) and selector.items() <= labels_of(template).items()


def workload_ref(workload: Body) -> Ref:
    return Ref(str(workload["kind"]), str(metadata(workload).get("namespace") or ""), name_of(workload), "apps")


def leads_to(resource: Resource) -> Iterator[Ref]:
    """The Secrets that an operator creates from a custom resource: a Certificate, an ExternalSecret."""
    known = kinds.known().get((resource.ref.group, resource.ref.kind))
    body = {**resource.body, "metadata": {**metadata(resource.body), "namespace": resource.ref.namespace}}
    if known is not None:
        yield from known.produces(body)
        return
    for path in (("spec", "secretName"), ("spec", "target", "name")):
        if isinstance(name := dig(body, *path), str):
            yield Ref("Secret", resource.ref.namespace, name)


def comes_from(case: Case, step: int, resource: Resource) -> set[Ref]:
    """An object, and the Secrets that exist only with it: of an Issuer, those of the Certificates that name it."""
    release = case.releases[step]
    reached = {resource.ref, *leads_to(resource)}
    sources = [(r, set(leads_to(r))) for r in (release.resources if release else ())]
    while more := {
        product
        for source, products in sources
        if products - reached and any(need.object in reached for need in needs_of(source))
        for product in products
    }:
        reached |= more
    return reached


def replaced(began: World, now: World, ref: Ref) -> bool:
    """Whether an object was deleted or its spec changed."""
    return ref in began and dig(began[ref], "spec") != dig(now.get(ref), "spec")


def registered(rehearsal: Rehearsal, call: RejectingCall) -> Event | None:
    """The creation of the webhook configuration that was called."""
    earlier = reversed(rehearsal.timeline[: call.event.index])
    return next((e for e in earlier if e.object == call.webhook.configuration and e.effect == "created"), None)


def is_about(webhook: Webhook, target: matching.WriteTarget, labels: dict[str, str], namespace: Body | None) -> bool:
    """Whether a webhook matches a write."""
    hooks = matching.read([{"kind": webhook.configuration.kind, "webhooks": [webhook.body]}], (), (), ())
    asked = matching.webhooks_for(hooks, "mutating", target)
    selected = fits(labels, webhook.body.get("objectSelector") or {})
    housed = namespace is None or fits(labels_of(namespace), webhook.body.get("namespaceSelector") or {})
    return bool(asked) and selected and housed


def covers(webhook: Webhook) -> str:
    """What a webhook matches, by its rules: `CREATE, UPDATE of pods, secrets`."""
    rules = listed(webhook.body, "rules")
    operations = dict.fromkeys(str(o) for rule in rules for o in listed(rule, "operations"))
    resources = dict.fromkeys(str(r) for rule in rules for r in listed(rule, "resources"))
    verbs = "every write" if "*" in operations else ", ".join(operations)
    return f"{verbs} of {'everything' if '*' in resources else ', '.join(resources)}"


def outcome_of(moment: Moment) -> str:
    """`helm install fails`, `the sync fails`"""
    ended = moment.ended
    ends = {"failed": "fails", "hung": "hangs", "ok": "succeeds"}[ended.outcome]
    if is_flux(moment.rehearsal) or moment.engine.name == "argocd":
        return f"{moment.act} {ends}"
    return f"{' '.join((moment.engine.name, ended.action, *ended.flags))} {ends}"


def is_record(ref: Ref) -> bool:
    """Whether it is a release Secret of Helm."""
    return ref.kind == "Secret" and ref.name.startswith("sh.helm.release.v1.")


def named(refs: list[Ref]) -> str:
    """`Gate/default/north`, `Gate/default/north and 3 more`"""
    more = len(refs) - NAMES_MAX
    return ", ".join(map(str, refs[:NAMES_MAX])) + (f" and {more} more" if more > 0 else "")


def _refused(rehearsal: Rehearsal, case: Case) -> Iterator[RejectingCall]:
    """Every write that was rejected because a webhook did not answer."""
    now: World = {}
    began: World = {}
    step = -1
    for event in rehearsal.timeline:
        if event.step < step:
            now = {}  # What follows is another cluster: it was rebuilt.
        if event.step != step:
            step, began = event.step, dict(now)
        call = event.refusal.call if event.refusal else None
        webhook = next((w for w in webhooks_in(now) if w.name == call.webhook), None) if call else None
        if call is not None and webhook is not None:
            yield RejectingCall(event, webhook, _cause(rehearsal, case, event, webhook, call, began, now))
        _follow(now, event)


def _cause(
    rehearsal: Rehearsal, case: Case, event: Event, webhook: Webhook, call: FailedCall, began: World, now: World
) -> Cause:
    service = webhook.service
    if event.effect == "said":
        # Controllers try again until it works; it never does where the pods of the backend itself are refused.
        template = dig(now.get(event.object), "spec", "template") or {}
        return "itself" if backs(template, now.get(service)) else "tried-again"
    if call.untrusted:
        return "authority"
    if service not in now and _is_stale(rehearsal, case, event, service):
        return "stale"
    backers = [workload_ref(body) for body in behind(now, service)]
    if any(_needs(case, event, backer) for backer in backers):
        return "bootstrap"
    if any(replaced(began, now, ref) for ref in (*backers, service)):
        return "rolled"
    return "unready"


def _is_stale(rehearsal: Rehearsal, case: Case, event: Event, service: Ref) -> bool:
    """Whether the Service does not come back: it was deleted, or no release of the trial has it."""
    went = any(e.object == service and e.effect in GOING for e in rehearsal.timeline[: event.index])
    return went or not any(resource.ref == service for resource in case.all_resources())


def _needs(case: Case, event: Event, backer: Ref) -> bool:
    """Whether the backend needs the rejected object, or what an operator creates from it."""
    refused, workload = case.written(event.step, event.object), case.written(event.step, backer)
    if refused is None or workload is None:
        return False
    needed = {need.object for need in needs_of(workload) if not need.optional and not need.guess}
    return bool(needed & comes_from(case, event.step, refused))


def _worlds(rehearsal: Rehearsal) -> Iterator[tuple[World, int]]:
    """The live objects at every so many events, and the step: what rules ask for is never far from one of them."""
    world: World = {}
    step = -1
    for start in range(0, len(rehearsal.timeline), EVENTS_BETWEEN):
        yield dict(world), step
        events = rehearsal.timeline[start : start + EVENTS_BETWEEN]
        world = _followed(events, world, step)
        step = events[-1].step


def _followed(events: Iterable[Event], found: World | None = None, step: int = -1) -> World:
    """The live objects after events that follow those that led to `found`, in this step."""
    found = {} if found is None else found
    for event in events:
        if event.step < step:
            found = {}  # Another cluster: it was rebuilt.
        step = event.step
        _follow(found, event)
    return found


def _follow(world: World, event: Event) -> None:
    if event.effect == "deleted":
        world.pop(event.object, None)
    elif event.after is not None and event.effect not in ("said", "read"):
        world[event.object] = event.after
