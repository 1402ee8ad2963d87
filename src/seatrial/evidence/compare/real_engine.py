"""An engine compared with the real one, a binary of the user: the same trial under the same schedule, step by step.

Compares how steps end, their requests and what controllers do, and the objects at the end. Reads, status updates,
times, counters and the records of Helm are left out. The resources of a program are deployed concurrently: what follows
from each is compared by itself, and the order only of those that depend on each other.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher
from typing import Any

import msgspec
from msgspec.structs import replace

from seatrial.evidence.compare.generated_names import numbered, renamed
from seatrial.evidence.compare.side_by_side import in_order, works_side_by_side
from seatrial.kinds.operators.argocd import GROUP
from seatrial.model import lazy_re
from seatrial.model.program import Program, effective
from seatrial.model.release import Case
from seatrial.model.resource import Body, Ref, metadata
from seatrial.model.result import EngineAgreement, EngineDifference
from seatrial.model.timeline import Event, Rehearsal

NO_EFFECT = ("read", "unchanged", "waiting")
VOLATILE = frozenset(("resourceVersion", "uid", "creationTimestamp", "deletionTimestamp", "time", "status"))
GONE = ("deleted",)
OF_ARGOCD = ("Application", "ApplicationSet")
"""Kinds in which Argo CD keeps notes beside their spec, written by other means than those of the simulated one."""
NOTED = ("managedFields", "generation")
OF_FLUX = ".toolkit.fluxcd.io"
"""Groups of objects that Flux itself acts on, and keeps notes in."""
RECORDS = "sh.helm.release.v1."
RANDOM = lazy_re.compile(r"(pulumi-kubernetes)-[0-9a-f]{8}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""In managedFields: the end of the name that a resource of Pulumi has as a manager, and the uid of an owner."""
COMMIT = lazy_re.compile(r"\[[0-9a-f]{40}\]")
"""In a message of Argo CD: the simulated one has no commits."""
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def agreement(model: Rehearsal, real: Rehearsal, case: Case) -> EngineAgreement:
    """Where two rehearsals of one trial differ. `case` has the programs of its steps."""
    (model, names), (real, _) = numbered(model), numbered(real)
    left, right = _objects(model), _objects(real)
    return EngineAgreement(
        model=str(model.engine),
        real=str(real.engine),
        schedule=real.schedule,
        case=case.name,
        steps=len(real.steps),
        events=sum(len(_events(real, step)) for step in range(len(real.steps))),
        objects=len(right),
        differences=(*_step_differences(model, real, case, names), *_object_differences(left, right)),
    )


def _step_differences(
    model: Rehearsal, real: Rehearsal, case: Case, names: dict[str, str]
) -> Iterator[EngineDifference]:
    for step, (simulated, ended) in enumerate(zip(model.steps, real.steps, strict=True)):
        if simulated.outcome != ended.outcome:
            yield EngineDifference(step, "outcome", simulated.outcome, ended.outcome)
        elif ended.outcome != "hung" and _said(model, step) != _said(real, step):  # A hang is put in our words.
            yield EngineDifference(step, "error", simulated.error, ended.error)
        if program := _program(case, step):
            dependent = [(renamed(one, names), renamed(other, names)) for one, other in _dependent(program)]
            yield from _concurrent_differences(step, model, real, dependent)
            continue
        before, after = _events(model, step), _events(real, step)
        for tag, i, j, k, m in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
            if tag != "equal":
                yield from _unpaired(step, before[i:j], after[k:m])


def _said(rehearsal: Rehearsal, step: int) -> list[str]:
    """The words of an error. Where an engine works side by side, the order of its reasons is chance."""
    error = COMMIT.sub("[COMMIT]", rehearsal.steps[step].error.strip())
    return sorted(re.split(r"[\n,]\s*", error)) if works_side_by_side(rehearsal) else error.split()


def _program(case: Case, step: int) -> Program | None:
    """The program of a step, or of the last one that had one: `destroy` has none of its own."""
    programs = [release.program for release in case.releases[: step + 1] if release and release.program]
    return programs[-1] if programs else None


def _concurrent_differences(
    step: int, model: Rehearsal, real: Rehearsal, dependent: list[tuple[Ref, Ref]]
) -> Iterator[EngineDifference]:
    before, after = _by_request(model, step), _by_request(real, step)
    for ref in dict.fromkeys((*before, *after)):
        if before.get(ref) != after.get(ref):
            yield from _unpaired(step, before.get(ref, []), after.get(ref, []))
    places = [{ref: place for place, ref in enumerate(side)} for side in (before, after)]
    for one, other in dependent:
        orders = [(where[one] < where[other]) for where in places if one in where and other in where]
        if len(set(orders)) == 2:
            words = [f"{one} before {other}", f"{other} before {one}"]
            yield EngineDifference(step, "event", *(words if orders[0] else reversed(words)))


def _by_request(rehearsal: Rehearsal, step: int) -> dict[Ref, list[str]]:
    """What happened in a step, by the object of the request that it follows from, in the order of these requests."""
    found: dict[Ref, list[str]] = {}
    for event in rehearsal.of_step(step):
        root = event
        while root.cause is not None:
            root = rehearsal.timeline[root.cause]
        if _is_compared(event):
            found.setdefault(root.object, []).append(_words(event))
    return found


def _dependent(program: Program) -> Iterator[tuple[Ref, Ref]]:
    """The objects of which the second may begin only when the first is done."""
    refs = {one.urn: one.ref for one in program.registrations if one.ref is not None}
    for one in program.registrations:
        for urn in sorted(effective(program, one)):
            if one.urn in refs and urn in refs:
                yield refs[urn], refs[one.urn]


def _unpaired(step: int, model: list[str], real: list[str]) -> Iterator[EngineDifference]:
    for number in range(max(len(model), len(real))):
        pair = (side[number] if number < len(side) else "" for side in (model, real))
        yield EngineDifference(step, "event", *pair)


def _events(rehearsal: Rehearsal, step: int) -> list[str]:
    if works_side_by_side(rehearsal):
        return in_order(rehearsal, step, lambda event: _words(_by(event, rehearsal)) if _is_compared(event) else "")
    return [_words(event) for event in rehearsal.of_step(step) if _is_compared(event)]


def _by(event: Event, rehearsal: Rehearsal) -> Event:
    """An engine that is in another one has no name of its own there."""
    return replace(event, actor=rehearsal.actors[0]) if event.actor in rehearsal.actors else event


def _is_compared(event: Event) -> bool:
    if event.object.name.startswith(RECORDS) or _is_of_flux(event.object) or _is_note(event):
        return False
    return event.effect not in NO_EFFECT and not (event.effect == "changed" and event.cause is not None)


def _is_note(event: Event) -> bool:
    """Whether it changes nothing but what Argo CD keeps in an Application: its status, operation and finalizers.

    Who removes the last finalizer of one that is being deleted is chance.
    """
    if not _is_of_argocd(event.object):
        return False
    if event.effect in GONE:
        return event.cause is not None or "deletionTimestamp" in metadata(event.before or {})
    return event.effect == "changed" and _spec(event.before) == _spec(event.after)


def _spec(application: Body | None) -> Body:
    """The spec of an Application; Argo CD itself writes the default project into those without one."""
    spec: Body = (application or {}).get("spec") or {}
    return {**spec, "project": spec.get("project") or "default"}


def _is_of_argocd(ref: Ref) -> bool:
    return ref.group == GROUP and ref.kind in OF_ARGOCD


def _is_of_flux(ref: Ref) -> bool:
    """An object of Flux itself, or the CRD of one."""
    return ref.group.endswith(OF_FLUX) or ref.name.endswith(OF_FLUX)


def _words(event: Event) -> str:
    effect = "deleting" if event.effect in GONE and _is_of_argocd(event.object) else event.effect
    words = (event.actor, event.verb, str(event.object), effect, event.message)
    return " ".join(filter(None, words))


def _objects(rehearsal: Rehearsal) -> dict[Ref, Any]:
    """The objects at the end of a trial, without times, counters and status."""
    found: dict[Ref, Any] = {}
    for event in rehearsal.timeline:
        if event.effect in GONE:
            found.pop(event.object, None)
        elif event.after is not None and event.effect != "refused":
            found[event.object] = event.after
    seen = ((ref, body) for ref, body in sorted(found.items()) if not _is_of_flux(ref))
    return {ref: _without_notes(ref, _settled(body)) for ref, body in seen if not ref.name.startswith(RECORDS)}


def _without_notes(ref: Ref, body: Any) -> Any:
    if not _is_of_argocd(ref):
        return body
    meta = {key: value for key, value in (body.get("metadata") or {}).items() if key not in NOTED}
    return {**{key: value for key, value in body.items() if key != "operation"}, "metadata": meta, "spec": _spec(body)}


def _settled(value: Any) -> Any:
    match value:
        case dict():
            return {key: _text(key, held) for key, held in value.items() if key not in VOLATILE}
        case list():
            return [_settled(item) for item in value]
    return value


def _text(key: str, value: Any) -> Any:
    """What kubectl writes as JSON is compared as JSON; managers and owners without what is random in them."""
    if key == "managedFields":
        return msgspec.json.decode(RANDOM.sub(r"\1", msgspec.json.encode(_settled(value)).decode()))
    return msgspec.json.decode(value) if key == LAST_APPLIED and isinstance(value, str) else _settled(value)


def _object_differences(model: dict[Ref, Any], real: dict[Ref, Any]) -> Iterator[EngineDifference]:
    for ref in sorted({*model, *real}):
        if ref not in model or ref not in real:
            yield EngineDifference(-1, "object", str(ref) if ref in model else "", str(ref) if ref in real else "")
            continue
        for path in _paths(model[ref], real[ref]):
            name = f"{ref} {'.'.join(path)}:"
            yield EngineDifference(-1, "object", *(f"{name} {_at(body[ref], path)}" for body in (model, real)))


def _paths(one: Any, other: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The innermost fields that differ."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in sorted({*one, *other}):
            yield from _paths(one.get(key), other.get(key), (*path, key))
    elif one != other:
        yield path


def _at(body: Body, path: Iterable[str]) -> str:
    value: Any = body
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return "absent" if value is None else msgspec.json.encode(value).decode()
