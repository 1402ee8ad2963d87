"""The webhook table: what each webhook matches, what it needs, and what of that existed at its first call.

Rules and selectors are those by which the API server itself chooses; what is there is read from timelines.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from seatrial.evidence.compare.engine_differences import ComparedRehearsal
from seatrial.evidence.moment import Moment
from seatrial.evidence.webhooks.calls import (
    CONFIGURATIONS,
    World,
    behind,
    state,
    state_after,
    workload_ref,
)
from seatrial.graph import placed
from seatrial.graph.linking import Webhooks
from seatrial.kinds.network.endpoints import SERVICE_LABEL
from seatrial.kinds.webhooks.cabundle import has_certificate, wants_injection
from seatrial.model.release import Case, Resource
from seatrial.model.resource import Body, Origin, Ref, Resolve, dig, labels_of, listed, version_of
from seatrial.model.result import Act, Asked, CalledFor, Gate, Presence, Requirement, Served, Then
from seatrial.model.timeline import ORDINARY, Event, Rehearsal

DEFINITION = "CustomResourceDefinition"
ACTS: tuple[tuple[Act, str], ...] = (("made", "CREATE"), ("deleted", "DELETE"))
WRITTEN = ("created", "changed", "refused")
GONE = ("deleted", "deleting", "refused")
UNEVENTFUL: tuple[Then, ...] = ("asked", "never sent")
RELEASE = "release"


class _Webhook(Struct, frozen=True):
    """One admission or conversion webhook, and the objects that it matches."""

    name: str
    owner: Ref
    client: Body
    policy: str
    """Fail, Ignore, or empty for a conversion webhook."""
    rules: tuple[Body, ...]
    about: dict[str, tuple[Ref, ...]]
    """By operation."""
    path: tuple[str | int, ...]
    pods_of: tuple[Ref, ...] = ()

    @property
    def service(self) -> Ref | None:
        found = self.client.get("service") or {}
        return Ref("Service", str(found.get("namespace") or ""), str(found["name"])) if found.get("name") else None


def gates(seen: Sequence[ComparedRehearsal], resolve: Resolve) -> Iterator[Gate]:
    """The webhooks that match objects of the trial's releases."""
    plain = [one for one in seen if one.rehearsal.schedule == ORDINARY and not one.case.name]
    resources = {resource.ref: resource for one in plain for resource in one.case.all_resources()}
    registered = {**_found(plain), **{ref: resource.body for ref, resource in resources.items()}}
    for webhook in (*_of_admission(registered, resources), *_of_conversion(registered, resources)):
        moments = tuple(moment for one in plain for moment in _moments(webhook, one.rehearsal, one.case, resources))
        if webhook.owner not in resources and all(moment.then in UNEVENTFUL for moment in moments):
            continue  # Of no release of the trial, and there all the time.
        yield Gate(
            webhook=webhook.name,
            owner=str(webhook.owner),
            policies=_policies(webhook, plain),
            rules=webhook.rules,
            about=tuple(_about(webhook)),
            needs=(*_definitions(webhook, registered, resources), *_needs(webhook, plain)),
            moments=moments,
            place=resolve(own.place(*webhook.path)) if (own := resources.get(webhook.owner)) else None,
        )


def _found(plain: Iterable[ComparedRehearsal]) -> World:
    """Webhook configurations and CRDs that existed at any time."""
    kinds = (*CONFIGURATIONS, DEFINITION)
    events = (event for one in plain for event in one.rehearsal.timeline if event.object.kind in kinds)
    return {event.object: event.after for event in events if event.after is not None}


def _of_admission(registered: World, resources: dict[Ref, Resource]) -> Iterator[_Webhook]:
    written = [Resource(ref, body, Origin("")) for ref, body in registered.items()]
    asked = Webhooks({one.ref: one for one in (*written, *resources.values())})
    for ref in sorted(ref for ref in registered if ref.kind in CONFIGURATIONS):
        for index, body in enumerate(listed(registered[ref], "webhooks")):
            name = str(body.get("name") or "")
            found = {
                operation: [
                    (resource.ref, at)
                    for resource in resources.values()
                    for hook, at in asked.called(resource, operation)
                    if (hook.configuration, hook.name) == (ref, name)
                ]
                for operation in ("CREATE", "UPDATE", "DELETE")
            }
            about = {operation: tuple(r for r, at in pairs if not at) for operation, pairs in found.items()}
            pods_of = tuple(r for r, at in found["CREATE"] if at)
            policy = str(body.get("failurePolicy") or "Fail")
            if any(about.values()) or pods_of:
                client = body.get("clientConfig") or {}
                rules = tuple(listed(body, "rules"))
                yield _Webhook(name, ref, client, policy, rules, about, ("webhooks", index, "name"), pods_of)


def _of_conversion(registered: World, resources: dict[Ref, Resource]) -> Iterator[_Webhook]:
    """CRDs with objects in another version than the stored one: reads and writes call the conversion webhook."""
    for ref in sorted(ref for ref in registered if ref.kind == DEFINITION):
        spec = registered[ref].get("spec") or {}
        conversion = spec.get("conversion") or {}
        if conversion.get("strategy") != "Webhook":
            continue
        key = (spec.get("group"), dig(spec, "names", "kind"))
        stored = next((str(v.get("name")) for v in listed(spec, "versions") if v.get("storage")), "")
        others = tuple(r.ref for r in resources.values() if (r.ref.group, r.ref.kind) == key and _version(r) != stored)
        if others:
            client = dig(conversion, "webhook", "clientConfig") or {}
            about = {"CREATE": others, "DELETE": others}
            yield _Webhook(f"the conversion to {stored}", ref, client, "", (), about, ("spec", "conversion"))


def _policies(webhook: _Webhook, plain: Iterable[ComparedRehearsal]) -> tuple[str, ...]:
    """The failure policies of a webhook during the trial."""
    if not webhook.policy:
        return ()
    events = (event for one in plain for event in one.rehearsal.timeline if event.object == webhook.owner)
    bodies = (hook for event in events for hook in listed(event.after, "webhooks") if hook.get("name") == webhook.name)
    said = dict.fromkeys(str(body.get("failurePolicy") or "Fail") for body in bodies)
    return tuple(said) or (webhook.policy,)


def _about(webhook: _Webhook) -> Iterator[CalledFor]:
    """Operations with the same objects, merged."""
    alike: dict[tuple[Ref, ...], list[str]] = {}
    for operation, refs in webhook.about.items():
        if refs:
            alike.setdefault(refs, []).append(operation)
    for refs, operations in alike.items():
        yield CalledFor(tuple(operations) if webhook.policy else (), tuple(map(str, refs)))
    if webhook.pods_of:
        yield CalledFor(("CREATE",), tuple(map(str, webhook.pods_of)), pods=True)


def _definitions(webhook: _Webhook, registered: World, resources: dict[Ref, Resource]) -> Iterator[Requirement]:
    """The CRDs of the custom kinds that the webhook matches."""
    versions: dict[Ref, dict[str, None]] = {}
    for ref in dict.fromkeys(ref for refs in webhook.about.values() for ref in refs):
        if (found := _defined(registered, ref)) is not None:
            versions.setdefault(found, {})[_version(resources[ref])] = None
    for definition, needed in versions.items():
        by = RELEASE if definition in resources else ""
        yield Requirement("definition", (str(definition),), tuple(needed), by)


def _needs(webhook: _Webhook, plain: Sequence[ComparedRehearsal]) -> Iterator[Requirement]:
    service = webhook.service
    if service is None:
        yield Requirement("url", (str(webhook.client.get("url") or ""),))
        return
    written = {resource.ref: placed(resource) for one in plain for resource in one.case.all_resources()}
    backers = tuple(str(workload_ref(body)) for body in behind(written, service))
    yield Requirement("service", (str(service),), by=RELEASE if service in written else "")
    yield Requirement("endpoint", backers, by=RELEASE if backers else "")
    yield Requirement("ca-bundle", (str(webhook.owner),), by=_authority(webhook, plain))


def _authority(webhook: _Webhook, plain: Sequence[ComparedRehearsal]) -> str:
    """The actor that wrote it."""
    brought = next((r.body for one in plain for r in one.case.all_resources() if r.ref == webhook.owner), None)
    if brought is not None and has_certificate(_bundle(webhook, brought)):
        return RELEASE
    if brought is not None and wants_injection(brought):
        return "cert-manager"
    for one in plain:
        for event in one.rehearsal.timeline:
            if event.object == webhook.owner and event.after and has_certificate(_bundle(webhook, event.after)):
                return event.actor if event.step >= 0 else "before"
    return ""


def _bundle(webhook: _Webhook, owner: Body) -> str:
    if webhook.owner.kind == DEFINITION:
        return str(dig(owner, "spec", "conversion", "webhook", "clientConfig", "caBundle") or "")
    own: Body = next((w for w in listed(owner, "webhooks") if w.get("name") == webhook.name), {})
    return str(dig(own, "clientConfig", "caBundle") or "")


def _moments(webhook: _Webhook, rehearsal: Rehearsal, case: Case, resources: dict[Ref, Resource]) -> Iterator[Asked]:
    """The first write and the first deletion of a matching object by an engine; a rejected one takes precedence."""
    for act, operation in ACTS:
        refs = webhook.about.get(operation) or ()
        event = _first(webhook, rehearsal, refs, act)
        if event is not None:
            yield _asked(webhook, rehearsal, event, act, _version(resources[event.object]))
        elif refs and act == "made":
            kind = _served(state_after(Moment(rehearsal, case, 0)), refs[0], _version(resources[refs[0]]))
            yield Asked(str(rehearsal.engine), act, "never sent", definition=kind)


def _first(webhook: _Webhook, rehearsal: Rehearsal, refs: Sequence[Ref], act: Act) -> Event | None:
    actors, wanted = rehearsal.actors, set(refs)
    effects = WRITTEN if act == "made" else GONE
    sent = [
        event
        for event in rehearsal.timeline
        if event.object in wanted
        and event.actor in actors
        and event.effect in effects
        and (event.verb == "delete") == (act == "deleted")
        and not (event.refusal and event.refusal.reason == "NotFound" and event.verb == "delete")
    ]
    refused = (event for event in sent if _is_refused(webhook, event))
    return next(refused, sent[0] if sent else None)


def _is_refused(webhook: _Webhook, event: Event) -> bool:
    call = event.refusal.call if event.refusal and event.effect == "refused" else None
    return call is not None and (call.webhook == webhook.name if webhook.policy else call.converts is not None)


def _asked(webhook: _Webhook, rehearsal: Rehearsal, event: Event, act: Act, version: str) -> Asked:
    world = state(rehearsal, event)
    service = webhook.service
    owner = world.get(webhook.owner)
    certified = owner is not None and has_certificate(_bundle(webhook, owner))
    answers = service is None or (_has_endpoint(world, service) and certified)
    return Asked(
        engine=str(rehearsal.engine),
        act=act,
        then=_then(webhook, event, asked=owner is not None, answers=answers),
        step=event.step,
        object=str(event.object),
        definition=_served(world, event.object, version),
        service=None if service is None else _presence(service in world),
        endpoint=None if service is None else "ready" if _has_endpoint(world, service) else "none",
        ca_bundle=None if service is None or owner is None else _presence(certified),
    )


def _presence(there: bool) -> Presence:
    return "there" if there else "missing"


def _then(webhook: _Webhook, event: Event, *, asked: bool, answers: bool) -> Then:
    if _is_refused(webhook, event):
        return "refused"
    if not asked:
        return "not registered"
    if event.effect == "refused":
        return "refused otherwise"
    return "asked" if answers or webhook.policy != "Ignore" else "let through"


def _served(world: World, ref: Ref, version: str) -> Served | None:
    """Whether the kind of an object is served in its version; None for built-in kinds."""
    definition = _defined(world, ref)
    if definition is None:
        return None
    body = world[definition]
    conditions = {c.get("type"): c.get("status") for c in listed(body, "status", "conditions")}
    versions = {str(v.get("name")) for v in listed(body, "spec", "versions") if v.get("served")}
    return "served" if conditions.get("Established") == "True" and version in versions else "not served"


def _defined(world: World, ref: Ref) -> Ref | None:
    named = ((other, dig(body, "spec")) for other, body in world.items() if other.kind == DEFINITION)
    key = ref.group, ref.kind
    return next((other for other, spec in named if (dig(spec, "group"), dig(spec, "names", "kind")) == key), None)


def _version(resource: Resource) -> str:
    return version_of(str(resource.body.get("apiVersion")))


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
