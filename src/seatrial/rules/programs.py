"""Registrations of Pulumi programs, as rules read them beside a timeline: what failed that nothing had ordered."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from seatrial.case import Case
from seatrial.registration import Program, Registration, effective, inside_of
from seatrial.resource import Ref, dig, listed
from seatrial.timeline import Event, Rehearsal

PULUMI = "pulumi"
NO_MATCH = re.compile(r'no matches for kind "(?P<kind>[^"]+)" in version "(?P<group>[^"]*?)/?[^"/]+"')
NO_NAMESPACE = re.compile(r'namespaces "(?P<name>[^"]+)" not found')
WEBHOOK = re.compile(r'failed calling webhook "(?P<name>[^"]+)"')
CONFIGURATIONS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")


def is_pulumi(rehearsal: Rehearsal) -> bool:
    return rehearsal.engine.partition("@")[0] == PULUMI


class Unordered(Struct, frozen=True):
    """A resource that failed for want of something in a component that gives no dependency."""

    ref: Ref
    registration: Registration
    component: Registration
    culprit: Ref
    """What was not there, or not ready."""
    named: bool
    """Whether it names the component in `dependsOn`; else it is itself inside."""
    event: Event
    """The last refusal, or the last try."""


def unordered(rehearsal: Rehearsal, case: Case) -> Iterator[Unordered]:
    """Every resource that a local component should have come before, or be in order within, and did not."""
    for step, ended in enumerate(rehearsal.steps):
        release = case.releases[step] if step < len(case.releases) else None
        if release is None or release.program is None or ended.outcome != "failed":
            continue
        for one in release.program.registrations:
            if one.ref is not None and f'"{one.urn}"' in ended.error:
                yield from _of_resource(rehearsal, step, release.program, one)


def _of_resource(rehearsal: Rehearsal, step: int, program: Program, one: Registration) -> Iterator[Unordered]:
    said = [e for e in rehearsal.of_step(step) if e.object == one.ref and e.message and e.actor == "pulumi"]
    if not said or one.ref is None:
        return
    for component, named in _components(program, one):
        culprit = _culprit(program, component, said[-1].message)
        if culprit is not None and culprit != one.ref:
            yield Unordered(one.ref, one, component, culprit, named, said[-1])
            return


def _components(program: Program, one: Registration) -> Iterator[tuple[Registration, bool]]:
    """Local components that it names and that stand for nothing, and the one that it is in."""
    inside = inside_of(program.registrations)
    before = effective(program, one)
    for urn in one.asked:
        component = program.find(urn)
        if component and component.is_component and not component.remote and not inside.get(urn, set()) & before:
            yield component, True
    parent = program.find(one.parent) if one.parent else None
    if parent is not None and parent.is_component and not parent.remote:
        yield parent, False


def _culprit(program: Program, component: Registration, words: str) -> Ref | None:
    """The object in a component that these words of the API server are about."""
    inside = inside_of(program.registrations).get(component.urn, set())
    for one in program.registrations:
        if one.urn in inside and one.ref is not None and _is_meant(one, words):
            return one.ref
    return None


def _is_meant(one: Registration, words: str) -> bool:
    assert one.ref is not None
    if (said := WEBHOOK.search(words)) and one.ref.kind in CONFIGURATIONS:
        return any(webhook.get("name") == said["name"] for webhook in listed(one.object, "webhooks"))
    if (said := NO_MATCH.search(words)) and one.ref.kind == "CustomResourceDefinition":
        defined = dig(one.object, "spec", "group"), dig(one.object, "spec", "names", "kind")
        return defined == (said["group"], said["kind"])
    said = NO_NAMESPACE.search(words)
    return bool(said) and one.ref.kind == "Namespace" and said is not None and one.ref.name == said["name"]
