"""Pulumi programs: resources that failed because nothing orders them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

from seatrial.evidence.faults import failed_webhook, failure_of, faults, missing_namespaces, unserved_kinds
from seatrial.evidence.moment import Moment, moments
from seatrial.kinds.tables.catalogue import CATALOGUE
from seatrial.model.program import CHART_V3, Program, Registration, effective, inside_of, short
from seatrial.model.refusal import Failure
from seatrial.model.release import Case
from seatrial.model.resource import Body, Ref, dig, listed, name_of, ref_of
from seatrial.model.timeline import Event, Rehearsal

PULUMI = "pulumi"


def is_pulumi(rehearsal: Rehearsal) -> bool:
    return rehearsal.engine.name == PULUMI


def programs(rehearsal: Rehearsal, case: Case) -> Iterator[tuple[Moment, Program]]:
    """The steps that bring up a program."""
    for moment in moments(rehearsal, case):
        release = moment.release if moment.index < len(case.releases) else None
        if release is not None and release.program is not None:
            yield moment, release.program


def changed_programs(rehearsal: Rehearsal, case: Case) -> Iterator[tuple[Moment, Program, Program]]:
    """Each `pulumi up` of an existing stack, with the program before and the new one."""
    for moment, program in programs(rehearsal, case):
        before = moment.before if moment.ended.action == "up" else None
        if before is not None and before.program is not None:
            yield moment, before.program, program


class Unordered(Struct, frozen=True):
    """A resource that failed because it does not depend on what it needs in the same program."""

    ref: Ref
    registration: Registration
    component: Registration
    """Its provider: a component that adds no dependency, or a resource that it does not name."""
    culprit: Ref
    """What was missing or not ready."""
    how: Literal["named", "inside", "forgotten"]
    """Whether it names the component in `dependsOn`, is itself inside, or does neither."""
    event: Event
    """The last rejection, or the last attempt."""


def unordered(rehearsal: Rehearsal, case: Case) -> Iterator[Unordered]:
    """Every resource that was created before what it needs, which the same program creates."""
    for moment, program in programs(rehearsal, case):
        if moment.ended.outcome != "failed":
            continue
        failed = {fault.urn for fault in faults(moment.ended.failure, "not-deployed")}
        for one in program.registrations:
            if one.ref is not None and one.urn in failed:
                yield from _of_resource(moment, program, one)


class Unexpanded(Struct, frozen=True):
    """A custom resource that names a chart in `dependsOn` without effect, where the chart is not on disk."""

    moment: Moment
    ref: Ref
    registration: Registration
    component: Registration
    absent: str
    """What is not on disk, and how to get it."""


def unexpanded(rehearsal: Rehearsal, case: Case) -> Iterator[Unexpanded]:
    """Each where it is created first."""
    seen: set[str] = set()
    for moment, program in programs(rehearsal, case):
        inside = inside_of(program.registrations)
        for one in program.registrations:
            if one.urn in seen or one.ref is None or one.ref not in moment.ended.created:
                continue
            if (one.ref.group, one.ref.kind) in CATALOGUE:
                continue
            for component, how in _components(program, one):
                absent = next((words for words in program.absent if words.startswith(f"{short(component.urn)}:")), "")
                if how == "named" and component.type == CHART_V3 and absent and component.urn not in inside:
                    seen.add(one.urn)
                    yield Unexpanded(moment, one.ref, one, component, absent)


def _of_resource(moment: Moment, program: Program, one: Registration) -> Iterator[Unordered]:
    said = [e for e in moment.events() if e.object == one.ref and e.message and e.actor == "pulumi"]
    if not said or one.ref is None:
        return
    lack = _lack(moment.rehearsal, failure_of(said[-1]))
    for component, how in _components(program, one):
        culprit = _culprit(program, component, lack)
        if culprit is not None and culprit != one.ref:
            yield Unordered(one.ref, one, component, culprit, how, said[-1])
            return
    for other, culprit in _forgotten(program, one, lack):
        yield Unordered(one.ref, one, other, culprit, "forgotten", said[-1])
        return


def _components(program: Program, one: Registration) -> Iterator[tuple[Registration, Literal["named", "inside"]]]:
    """Local components that it names without effect, and the one that contains it."""
    inside = inside_of(program.registrations)
    before = effective(program, one)
    for urn in one.asked:
        component = program.find(urn)
        if component and component.is_component and not component.remote and not inside.get(urn, set()) & before:
            yield component, "named"
    parent = program.find(one.parent) if one.parent else None
    if parent is not None and parent.is_component and not parent.remote:
        yield parent, "inside"


def _forgotten(program: Program, one: Registration, lack: _Lack) -> Iterator[tuple[Registration, Ref]]:
    """The provider of the missing kind, namespace or object, if it is not a dependency; webhooks have other rules."""
    before = effective(program, one)
    for other in program.registrations if not lack.webhook else ():
        if other.urn == one.urn or other.urn in before or other.reads:
            continue
        for body in (*((other.object,) if other.object else ()), *other.definitions, *other.contents):
            if _is_meant(body, lack):
                yield other, ref_of(body)


def _culprit(program: Program, component: Registration, lack: _Lack) -> Ref | None:
    """The object in a component that this API error is about."""
    inside = inside_of(program.registrations).get(component.urn, set())
    for one in program.registrations:
        if one.urn in inside and one.object is not None and _is_meant(one.object, lack):
            return one.ref
    return None


class _Lack(Struct, frozen=True):
    """What was not there, or did not answer, when a resource failed."""

    webhook: str
    kinds: frozenset[tuple[str, str]]
    """(group, kind)"""
    namespaces: frozenset[str]
    objects: frozenset[Ref]
    """Other objects that the API server looked for, such as the ServiceAccount of a Pod."""


def _lack(rehearsal: Rehearsal, failure: Failure) -> _Lack:
    return _Lack(
        failed_webhook(rehearsal, failure),
        frozenset((kind.group, kind.kind) for kind in unserved_kinds(failure)),
        frozenset(home.name for home in missing_namespaces(rehearsal, failure)),
        frozenset(ref for event in rehearsal.refusals_of(failure) for ref in event.missing),
    )


def _is_meant(body: Body, lack: _Lack) -> bool:
    match body.get("kind"):
        case "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration":
            return any(webhook.get("name") == lack.webhook for webhook in listed(body, "webhooks"))
        case "CustomResourceDefinition":
            return (dig(body, "spec", "group"), dig(body, "spec", "names", "kind")) in lack.kinds
        case "Namespace":
            return name_of(body) in lack.namespaces
    return ref_of(body) in lack.objects
