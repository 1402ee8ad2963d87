"""Webhooks as gates: what each is asked about, what it takes to answer, and what of it is there when it is first asked.

Rules and selectors are those by which the API server itself chooses; what is there is read from timelines.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from seatrial.case import Resource
from seatrial.contrast import Seen
from seatrial.graph import placed
from seatrial.graph.linking import Webhooks
from seatrial.kinds.cabundle import asks_for_injection, holds_certificate
from seatrial.kinds.endpoints import SERVICE_LABEL
from seatrial.resource import Body, Place, Ref, dig, labels_of, listed, version_of
from seatrial.result import Asked, Gate
from seatrial.rules.webhookcalls import CONFIGURATIONS, World, behind, state, workload_ref
from seatrial.standings import actors_of
from seatrial.timeline import Event, Rehearsal

SCHEDULE = "lazy"
DEFINITION = "CustomResourceDefinition"
ACTS = (("made", "CREATE"), ("deleted", "DELETE"))
WRITTEN = ("created", "changed", "refused")
GONE = ("deleted", "deleting", "refused")
ASKED, NEVER_SENT = "asked", "never sent"
UNEVENTFUL = (ASKED, NEVER_SENT)


class _Webhook(Struct, frozen=True):
    """One webhook, of admission or of conversion, and the objects that it is asked about."""

    name: str
    owner: Ref
    client: Body
    policy: str
    """Fail, Ignore, or empty: a conversion has no choice."""
    about: dict[str, tuple[Ref, ...]]
    """By operation."""
    path: tuple[str | int, ...]
    pods_of: tuple[Ref, ...] = ()

    @property
    def service(self) -> Ref | None:
        found = self.client.get("service") or {}
        return Ref("Service", str(found.get("namespace") or ""), str(found["name"])) if found.get("name") else None


def gates(seen: Sequence[Seen]) -> Iterator[Gate]:
    """The webhooks that are asked about anything that the releases of a trial hold."""
    plain = [one for one in seen if one.rehearsal.schedule == SCHEDULE and not one.case.name]
    resources = {resource.ref: resource for one in plain for resource in one.case.all_resources()}
    registered = {**_found(plain), **{ref: resource.body for ref, resource in resources.items()}}
    for webhook in (*_of_admission(registered, resources), *_of_conversion(registered, resources)):
        moments = tuple(moment for one in plain for moment in _moments(webhook, one.rehearsal))
        if webhook.owner not in resources and all(moment.then in UNEVENTFUL for moment in moments):
            continue  # Of no release of the trial, and there all the time.
        yield Gate(
            webhook=webhook.name,
            owner=str(webhook.owner),
            policy=_policy(webhook, plain),
            about=tuple(_told(webhook)),
            needs=tuple(_needs(webhook, registered, plain)),
            moments=moments,
            place=_place(webhook, resources),
        )


def _found(plain: Iterable[Seen]) -> World:
    """Configurations and definitions that were in a cluster at any time, whoever put them there."""
    kinds = (*CONFIGURATIONS, DEFINITION)
    events = (event for one in plain for event in one.rehearsal.timeline if event.object.kind in kinds)
    return {event.object: event.after for event in events if event.after is not None}


def _of_admission(registered: World, resources: dict[Ref, Resource]) -> Iterator[_Webhook]:
    written = [Resource(ref, body, "", lambda path: Place("", 1)) for ref, body in registered.items()]
    asked = Webhooks({one.ref: one for one in (*written, *resources.values())})
    for ref in sorted(ref for ref in registered if ref.kind in CONFIGURATIONS):
        for index, body in enumerate(listed(registered[ref], "webhooks")):
            name = str(body.get("name") or "")
            found = {
                operation: [
                    (resource.ref, at)
                    for resource in resources.values()
                    for hook, at in asked.asked(resource, operation)
                    if (hook.configuration, hook.name) == (ref, name)
                ]
                for operation in ("CREATE", "UPDATE", "DELETE")
            }
            about = {operation: tuple(r for r, at in pairs if not at) for operation, pairs in found.items()}
            pods_of = tuple(r for r, at in found["CREATE"] if at)
            policy = str(body.get("failurePolicy") or "Fail")
            if any(about.values()) or pods_of:
                client = body.get("clientConfig") or {}
                yield _Webhook(name, ref, client, policy, about, ("webhooks", index, "name"), pods_of)


def _of_conversion(registered: World, resources: dict[Ref, Resource]) -> Iterator[_Webhook]:
    """Definitions with objects in a version other than the one that is stored: each way there and back asks."""
    for ref in sorted(ref for ref in registered if ref.kind == DEFINITION):
        spec = registered[ref].get("spec") or {}
        conversion = spec.get("conversion") or {}
        if conversion.get("strategy") != "Webhook":
            continue
        key = (spec.get("group"), dig(spec, "names", "kind"))
        stored = next((str(v.get("name")) for v in listed(spec, "versions") if v.get("storage")), "")
        others = tuple(
            r.ref
            for r in resources.values()
            if (r.ref.group, r.ref.kind) == key and version_of(str(r.body.get("apiVersion"))) != stored
        )
        if others:
            client = dig(conversion, "webhook", "clientConfig") or {}
            about = {"CREATE": others, "DELETE": others}
            yield _Webhook(f"the conversion to {stored}", ref, client, "", about, ("spec", "conversion"))


def _policy(webhook: _Webhook, plain: Iterable[Seen]) -> str:
    """What becomes of a call that fails; in the course of a trial that may change."""
    if not webhook.policy:
        return "no failurePolicy"
    events = (event for one in plain for event in one.rehearsal.timeline if event.object == webhook.owner)
    bodies = (hook for event in events for hook in listed(event.after, "webhooks") if hook.get("name") == webhook.name)
    said = dict.fromkeys(str(body.get("failurePolicy") or "Fail") for body in bodies)
    return f"failurePolicy {', then '.join(said or [webhook.policy])}"


def _told(webhook: _Webhook) -> Iterator[str]:
    """`CREATE, UPDATE of Gate/default/north`: operations with the same objects in one."""
    alike: dict[tuple[Ref, ...], list[str]] = {}
    for operation, refs in webhook.about.items():
        if refs:
            alike.setdefault(refs, []).append(operation)
    for refs, operations in alike.items():
        verbs = ", ".join(operations) if webhook.policy else "any use"
        yield f"{verbs} of {_named(refs)}"
    if webhook.pods_of:
        yield f"CREATE of the pods of {_named(webhook.pods_of)}"


def _named(refs: Sequence[Ref]) -> str:
    more = len(refs) - 3
    return ", ".join(map(str, refs[:3])) + (f" and {more} more" if more > 0 else "")


def _needs(webhook: _Webhook, registered: World, plain: Sequence[Seen]) -> Iterator[str]:
    service = webhook.service
    if service is None:
        yield f"whoever answers at {webhook.client.get('url') or 'its URL'}"
        return
    written = {resource.ref: placed(resource) for one in plain for resource in one.case.all_resources()}
    yield f"{service}{'' if service in written else ' (of no release)'}"
    backers = [workload_ref(body) for body in behind(written, service)]
    yield f"a ready pod of {_named(backers)}" if backers else "a ready pod behind it"
    yield f"a caBundle{_authority(webhook, registered, plain)}"


def _authority(webhook: _Webhook, registered: World, plain: Sequence[Seen]) -> str:
    """Who writes it, as it was seen."""
    brought = next((r.body for one in plain for r in one.case.all_resources() if r.ref == webhook.owner), None)
    if brought is not None and holds_certificate(_bundle(webhook, brought)):
        return ", which is in the release"
    if brought is not None and asks_for_injection(brought):
        return ", which cert-manager injects"
    for one in plain:
        for event in one.rehearsal.timeline:
            if event.object == webhook.owner and event.after and holds_certificate(_bundle(webhook, event.after)):
                return f", which {event.actor} writes" if event.step >= 0 else ""
    return ", which nobody was seen to write"


def _bundle(webhook: _Webhook, owner: Body) -> str:
    if webhook.owner.kind == DEFINITION:
        return str(dig(owner, "spec", "conversion", "webhook", "clientConfig", "caBundle") or "")
    own: Body = next((w for w in listed(owner, "webhooks") if w.get("name") == webhook.name), {})
    return str(dig(own, "clientConfig", "caBundle") or "")


def _moments(webhook: _Webhook, rehearsal: Rehearsal) -> Iterator[Asked]:
    """When an engine first writes, and first deletes, what the webhook is about; what it is refused for goes first."""
    for act, operation in ACTS:
        refs = webhook.about.get(operation) or ()
        event = _first(webhook, rehearsal, refs, act)
        if event is not None:
            yield _asked(webhook, rehearsal, event, act)
        elif refs and act == "made":
            yield Asked(rehearsal.engine, act, "-", "-", "-", "-", NEVER_SENT)


def _first(webhook: _Webhook, rehearsal: Rehearsal, refs: Sequence[Ref], act: str) -> Event | None:
    actors, wanted = actors_of(rehearsal), set(refs)
    effects = WRITTEN if act == "made" else GONE
    sent = [
        event
        for event in rehearsal.timeline
        if event.object in wanted
        and event.actor in actors
        and event.effect in effects
        and (event.verb == "delete") == (act == "deleted")
        and not (event.verb == "delete" and event.message.endswith(" not found"))
    ]
    refused = (event for event in sent if _is_refused(webhook, event))
    return next(refused, sent[0] if sent else None)


def _is_refused(webhook: _Webhook, event: Event) -> bool:
    words = f'failed calling webhook "{webhook.name}"' if webhook.policy else "conversion webhook for"
    return event.effect == "refused" and words in event.message


def _asked(webhook: _Webhook, rehearsal: Rehearsal, event: Event, act: str) -> Asked:
    world = state(rehearsal, event)
    service = webhook.service
    owner = world.get(webhook.owner)
    answers = service is None or (_has_endpoint(world, service) and holds_certificate(_bundle(webhook, owner or {})))
    return Asked(
        rehearsal.engine,
        act,
        _definition(world, event.object),
        "-" if service is None else "there" if service in world else "missing",
        "-" if service is None else "ready" if _has_endpoint(world, service) else "none",
        "-" if service is None or owner is None else "there" if holds_certificate(_bundle(webhook, owner)) else "none",
        _then(webhook, event, asked=owner is not None, answers=answers),
    )


def _then(webhook: _Webhook, event: Event, *, asked: bool, answers: bool) -> str:
    if _is_refused(webhook, event):
        return "refused"
    if not asked:
        return "not asked: it is not registered"
    if event.effect == "refused":
        return "refused, but not by it"
    return ASKED if answers or webhook.policy != "Ignore" else "let through unasked"


def _definition(world: World, ref: Ref) -> str:
    for other, body in world.items():
        named = dig(body, "spec", "group"), dig(body, "spec", "names", "kind")
        if other.kind == DEFINITION and named == (ref.group, ref.kind):
            conditions = {c.get("type"): c.get("status") for c in listed(body, "status", "conditions")}
            return "served" if conditions.get("Established") == "True" else "not yet"
    return "-"


def _has_endpoint(world: World, service: Ref) -> bool:
    slices = (
        body
        for ref, body in world.items()
        if ref.kind == "EndpointSlice"
        and ref.namespace == service.namespace
        and labels_of(body).get(SERVICE_LABEL) == service.name
    )
    endpoints = (endpoint for body in slices for endpoint in listed(body, "endpoints"))
    return service in world and any(dig(one, "conditions", "ready") is not False for one in endpoints)


def _place(webhook: _Webhook, resources: dict[Ref, Resource]) -> Place | None:
    own = resources.get(webhook.owner)
    return own.place(*webhook.path) if own else None
