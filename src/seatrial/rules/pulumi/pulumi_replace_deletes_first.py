"""Pulumi deletes an object before it makes it anew, and with it all that is built from its outputs.

## What happens
Some fields Pulumi never changes in place: the data of a ConfigMap or Secret, the selector of a Deployment, the class of
a claim, the template of a Job. Another value means another object. Where Pulumi has given the name itself, it makes the
new object first and deletes the old one at the end. Where the program gives the name, two cannot be there at once: the
old object is deleted first, with all that goes with it, such as the volume of a claim or the content of a Namespace.

It does not end there. While the object is gone, nobody knows what its outputs will be. Pulumi takes every input that is
made of them for unknown, a whole `spec` for a single name in it, and asks the provider what an unknown `spec` would
mean. It would mean another selector, so the Deployment has to be replaced, and is deleted even before the object that
it was built from. So a new value in a ConfigMap ends with all pods gone until the Deployment is made anew, although
nothing in the Deployment has changed. With an unknown `metadata`, such as a label that is taken from an output, it is
the same for every kind, claims included: who has no name that is known is replaced.

A mere `dependsOn` takes nothing along. Neither does a Service with an output in its `spec`, unless it gives its
clusterIP: all else of it can be changed in place.

## Example
```yaml
resources:
  config:
    type: kubernetes:core/v1:ConfigMap
    properties:
      metadata: {name: web-config}               # given by the program
      data: {greeting: goodbye}                  # was: hello
  web:
    type: kubernetes:apps/v1:Deployment          # deleted, and made anew afterwards
    properties:
      metadata: {name: web}
      spec: {template: {spec: {containers: [{envFrom: [{configMapRef: {name: "${config.metadata.name}"}}]}]}}}
```

## Instead
Leave out the name of what changes: then the new one is made first, what is built from it rolls over, and the old one
goes last. Where the name is needed, write it as text in both places and say `dependsOn`: that is no input.
With `kubernetes:enableConfigMapMutable` and `kubernetes:enableSecretMutable` in the configuration of the stack,
ConfigMaps and Secrets are changed in place. What must not be lost has `protect: true`: then the preview fails.

## Fix safety
Leaving out a name makes another object of it, once. Text in the place of an output means that Pulumi no longer sees
where it comes from: say `dependsOn`, or it is made too early.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from seatrial.evidence.history import GOING, cascade
from seatrial.evidence.moment import Moment, found, moments
from seatrial.evidence.volumes import CLAIM
from seatrial.kinds.tables.pulumi_force_new import at, force_new_fields
from seatrial.model.finding import DAMAGES, Damage, Finding, Rule
from seatrial.model.program import Program, Registration, short
from seatrial.model.release import Case
from seatrial.model.resource import Ref
from seatrial.model.timeline import Event, Rehearsal
from seatrial.phrases.outcome import named
from seatrial.phrases.recreated import LOST_MAX, damage_of, lost_sentence, with_it

WORKLOADS = ("DaemonSet", "Deployment", "ReplicationController", "StatefulSet")
WORTH_TELLING = (*WORKLOADS, "Ingress", "Namespace", "PersistentVolume", CLAIM, "Service")
"""Kinds of which it matters that they are gone for a while; a Job that is made anew is to run again."""
MUTABLE = {"ConfigMap": "kubernetes:enableConfigMapMutable", "Secret": "kubernetes:enableSecretMutable"}
FIELDS_MAX = 4
EMPTY = "The volume of a claim goes with it, unless its reclaim policy is Retain: the new claim gets an empty one."


class Replaced(Struct, frozen=True):
    """A resource that is deleted before it is made anew, and those that are deleted along with it."""

    old: Registration
    new: Registration
    along: tuple[Registration, ...]


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    told: set[str] = set()
    for moment in moments(rehearsal, case):
        release = moment.release if moment.index < len(case.releases) else None
        before = moment.before
        if (
            moment.ended.action != "up"
            or release is None
            or release.program is None
            or not before
            or not before.program
        ):
            continue
        deletions = {
            event.object: event
            for event in moment.events()
            if event.actor == "pulumi" and event.verb == "delete" and event.effect in GOING
        }
        for one in _replaced(before.program, release.program, deletions):
            matters = one.along or (one.old.ref is not None and one.old.ref.kind in WORTH_TELLING)
            if matters and one.old.urn not in told:
                told.add(one.old.urn)
                yield _finding(moment, one, deletions)


def _replaced(old: Program, new: Program, deletions: dict[Ref, Event]) -> Iterator[Replaced]:
    gone = [one for one in old.registrations if one.ref in deletions]
    for one in gone:
        again = new.find(one.urn)
        if again is not None and again.ref == one.ref and again.object != one.object:
            yield Replaced(one, again, tuple(new.find(other.urn) or other for other in _along(one, gone, new)))


def _along(root: Registration, gone: list[Registration], new: Program) -> Iterator[Registration]:
    """Those that were deleted though nothing in them changes, and are built from it, directly or through others."""
    urns = {root.urn}
    for one in gone:
        again = new.find(one.urn)
        same = again is None or again.object == one.object
        if one.urn != root.urn and same and urns & {one.options.deleted_with, *_sources(one)}:
            urns.add(one.urn)
            yield one


def _sources(one: Registration) -> set[str]:
    return {urn for urns in one.property_dependencies.values() for urn in urns}


def _finding(moment: Moment, one: Replaced, deletions: dict[Ref, Event]) -> Finding:
    root = one.old
    assert root.ref is not None
    refs = [ref for ref in (root.ref, *(other.ref for other in one.along)) if ref is not None]
    lost = {ref: list(_lost(moment.rehearsal, deletions[ref], refs)) for ref in refs}
    every = [event for events in lost.values() for event in events]
    return found(
        RULE,
        moment,
        objects=[*refs[1:], root.ref] if one.along else refs,
        damage=min((_damage(moment, ref, lost[ref]) for ref in refs), key=DAMAGES.index),
        message=_message(one, lost[root.ref], again=set(refs) <= {*moment.ended.recreated}),
        details=(
            _why(one),
            _why_along(one),
            lost_sentence(moment, [event.object for event in every]),
            EMPTY if any(ref.kind == CLAIM for ref in refs) else "",
            _without_pods(refs),
            _instead(one),
        ),
        places=[place for place in (one.new.place, *(other.place for other in one.along)) if place],
        evidence=[*(deletions[ref] for ref in reversed(refs)), *every[:LOST_MAX]],
        confirm=f"pulumi preview --diff  # {short(root.urn)}: replace",
    )


def _lost(rehearsal: Rehearsal, deletion: Event, told: list[Ref]) -> Iterator[Event]:
    """What went with an object and is not told of otherwise."""
    for event in cascade(rehearsal, deletion):
        if event.object not in told and event.object.kind != "PersistentVolume":
            yield event


def _damage(moment: Moment, ref: Ref, lost: list[Event]) -> Damage:
    if lost or ref.kind in WORTH_TELLING:
        return damage_of(moment, ref, lost)
    return "nuisance"


def _message(one: Replaced, lost: list[Event], *, again: bool) -> str:
    if not one.along:
        anew = "and makes it anew" if again else "and does not come to make it anew"
        return f"pulumi up deletes {one.old.ref}{with_it(lost)} {anew}: {_fields(one)} cannot change in place"
    many = len(one.along) > 1
    anew = "and makes all anew" if again else "and does not come to make all anew"
    others = named(other.ref for other in one.along if other.ref)
    return (
        f"pulumi up deletes {others} along with {one.old.ref}{with_it(lost)}, "
        f"since {'they are' if many else 'it is'} built from its outputs, {anew}"
    )


def _fields(one: Replaced) -> str:
    assert one.old.ref is not None and one.old.object is not None and one.new.object is not None
    changed = [
        path
        for path in force_new_fields(one.old.ref, one.new.manner)
        if at(one.old.object, path) != at(one.new.object, path)
    ]
    return ", ".join(changed[:FIELDS_MAX]) or ", ".join(one.new.options.replace_on_changes)


def _why(one: Replaced) -> str:
    kind = one.old.ref.kind if one.old.ref else ""
    return (
        f"Another value in {_fields(one)} makes another {kind} of it, and the program gives it the name that the old "
        "one has: so the old one is deleted first."
    )


def _why_along(one: Replaced) -> str:
    for other in one.along:
        keys = [key for key, urns in other.property_dependencies.items() if one.old.urn in urns]
        if keys:
            never = "its name" if keys[0] == "metadata" else "what cannot change in it"
            return (
                f"The {keys[0]} of {short(other.urn)} is made of outputs of {short(one.old.urn)}. As long as that is "
                f"not there, Pulumi takes all of the {keys[0]} for unknown, {never} included, and replaces "
                f"{short(other.urn)} too, whatever comes of it."
            )
    return ""


def _without_pods(refs: list[Ref]) -> str:
    stopped = [ref for ref in refs if ref.kind in WORKLOADS]
    if not stopped:
        return ""
    return f"No pod of {named(stopped)} runs until Pulumi has made it anew: there is no rollout."


def _instead(one: Replaced) -> str:
    option = MUTABLE.get(one.old.ref.kind if one.old.ref else "")
    if option:
        return (
            f"Without metadata.name Pulumi makes the new one first, rolls over to it, and deletes the old one last; "
            f"{option} has it changed in place."
        )
    if CLAIM in {other.ref.kind for other in (one.old, *one.along) if other.ref}:
        return "With protect: true the preview fails, and nothing is touched."
    return "A name that is written as text, beside dependsOn, takes nothing along." if one.along else ""


RULE = Rule("ST904", "pulumi-replace-deletes-first", check)
