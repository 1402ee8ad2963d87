"""Pulumi deletes an object before it recreates it, along with everything built from its outputs.

## What happens
Pulumi never changes some fields in place: the data of a ConfigMap or Secret, the selector of a Deployment, the class of
a PVC, the template of a Job. A new value means a new object. If Pulumi generates the name, it creates the new object
first and deletes the old one at the end. If the program sets the name, both cannot exist at once: the old object is
deleted first, with everything that depends on it, such as the volume of a PVC or the content of a Namespace.

That is not all. While the object does not exist, its outputs are unknown. Pulumi treats every input built from them as
unknown, a whole `spec` because of a single name in it, and asks the provider what an unknown `spec` means. It could
mean another selector, so the Deployment must be replaced, and is deleted even before the object it was built from. So a
new value in a ConfigMap deletes all pods until the Deployment is recreated, although nothing in the Deployment changed.
With an unknown `metadata`, such as a label from an output, it is the same for every kind, including PVCs: a resource
whose name is unknown is replaced.

A `dependsOn` alone does not cause this. Neither does an output in the `spec` of a Service, unless it sets the
clusterIP: everything else of a Service can change in place.

## Example
```yaml
resources:
  config:
    type: kubernetes:core/v1:ConfigMap
    properties:
      metadata: {name: web-config}               # set by the program
      data: {greeting: goodbye}                  # was: hello
  web:
    type: kubernetes:apps/v1:Deployment          # deleted, and recreated afterwards
    properties:
      metadata: {name: web}
      spec: {template: {spec: {containers: [{envFrom: [{configMapRef: {name: "${config.metadata.name}"}}]}]}}}
```

## Instead
Omit the name of what changes: then the new object is created first, its dependents roll over, and the old one is
deleted last. If the name is needed, write it as text in both places and add `dependsOn`, which is not an input. With
`kubernetes:enableConfigMapMutable` and `kubernetes:enableSecretMutable` in the stack configuration, ConfigMaps and
Secrets change in place. Set `protect: true` on what must not be lost: then the preview fails.

## Fix safety
Omitting a name replaces the object once. With text instead of an output Pulumi no longer sees the dependency: add
`dependsOn`, or the object is created too early.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from seatrial.evidence.history import GOING, cascade
from seatrial.evidence.moment import Moment, found
from seatrial.evidence.pulumi.programs import changed_programs
from seatrial.evidence.volumes import CLAIM
from seatrial.kinds.tables.pulumi_force_new import at, force_new_fields
from seatrial.model.finding import DAMAGES, Damage, Finding, Rule
from seatrial.model.program import Program, Registration, short
from seatrial.model.release import Case
from seatrial.model.resource import Ref
from seatrial.model.timeline import Event, Rehearsal
from seatrial.phrases.outcome import first_named, named
from seatrial.phrases.recreated import LOST_MAX, damage_of, lost_sentence, with_it

WORKLOADS = ("DaemonSet", "Deployment", "ReplicationController", "StatefulSet")
WORTH_TELLING = (*WORKLOADS, "Ingress", "Namespace", "PersistentVolume", CLAIM, "Service")
"""Kinds whose temporary absence matters; a Job is recreated in order to run again."""
MUTABLE = {"ConfigMap": "kubernetes:enableConfigMapMutable", "Secret": "kubernetes:enableSecretMutable"}
FIELDS_MAX = 4
EMPTY = "The volume of a PVC is deleted with it, unless its reclaim policy is Retain: the new PVC gets an empty one."


class Replaced(Struct, frozen=True):
    """A resource that is deleted before it is recreated, and those that are deleted along with it."""

    old: Registration
    new: Registration
    along: tuple[Registration, ...]


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    reported: set[str] = set()
    for moment, before, program in changed_programs(rehearsal, case):
        deletions = {
            event.object: event
            for event in moment.events()
            if event.actor == "pulumi" and event.verb == "delete" and event.effect in GOING
        }
        for one in _replaced(before, program, deletions):
            matters = one.along or (one.old.ref is not None and one.old.ref.kind in WORTH_TELLING)
            if matters and one.old.urn not in reported:
                reported.add(one.old.urn)
                yield _finding(moment, one, deletions)


def _replaced(old: Program, new: Program, deletions: dict[Ref, Event]) -> Iterator[Replaced]:
    gone = [one for one in old.registrations if one.ref in deletions]
    for one in gone:
        again = new.find(one.urn)
        if again is not None and again.ref == one.ref and again.object != one.object:
            yield Replaced(one, again, tuple(new.find(other.urn) or other for other in _along(one, gone, new)))


def _along(root: Registration, gone: list[Registration], new: Program) -> Iterator[Registration]:
    """Unchanged resources that are deleted because they are built from it, directly or through others."""
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
        ),
        way_out=(_instead(one),),
        places=[place for place in (one.new.place, *(other.place for other in one.along)) if place],
        evidence=[*(deletions[ref] for ref in reversed(refs)), *every[:LOST_MAX]],
        confirm=f"pulumi preview --diff  # {short(root.urn)}: replace",
    )


def _lost(rehearsal: Rehearsal, deletion: Event, known: list[Ref]) -> Iterator[Event]:
    """What was deleted with an object and is not reported otherwise."""
    for event in cascade(rehearsal, deletion):
        if event.object not in known and event.object.kind != "PersistentVolume":
            yield event


def _damage(moment: Moment, ref: Ref, lost: list[Event]) -> Damage:
    if lost or ref.kind in WORTH_TELLING:
        return damage_of(moment, ref, lost)
    return "nuisance"


def _message(one: Replaced, lost: list[Event], *, again: bool) -> str:
    if not one.along:
        outcome = "and recreates it" if again else "without recreating it"
        return f"pulumi up deletes {one.old.ref}{with_it(lost)} {outcome}: {_fields(one)} cannot change in place"
    outcome = "and recreates all of them" if again else "and does not recreate all of them"
    others = first_named(other.ref for other in one.along if other.ref)
    return f"pulumi up replaces {one.old.ref}{with_it(lost)}, deletes {others} {outcome}"


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
        f"A new value in {_fields(one)} requires a new {kind}, and the program sets its name: so the old one is "
        "deleted first."
    )


def _why_along(one: Replaced) -> str:
    for other in one.along:
        keys = [key for key, urns in other.property_dependencies.items() if one.old.urn in urns]
        if keys:
            never = "its name" if keys[0] == "metadata" else "immutable fields"
            return (
                f"The {keys[0]} of {short(other.urn)} uses outputs of {short(one.old.urn)}. While {short(one.old.urn)} "
                f"does not exist, Pulumi treats the whole {keys[0]} as unknown, including {never}, and replaces "
                f"{short(other.urn)} too."
            )
    return ""


def _without_pods(refs: list[Ref]) -> str:
    stopped = [ref for ref in refs if ref.kind in WORKLOADS]
    if not stopped:
        return ""
    return f"No pod of {named(stopped)} runs until Pulumi has recreated it: there is no rollout."


def _instead(one: Replaced) -> str:
    ref = one.old.ref
    assert ref is not None
    if option := MUTABLE.get(ref.kind):
        return (
            f"Omit metadata.name of {ref}: Pulumi then creates the new one first, rolls out its users, and deletes the "
            f"old one last. Or set {option}: then it updates the object in place."
        )
    if CLAIM in {other.ref.kind for other in (one.old, *one.along) if other.ref}:
        return f"Set protect: true on {ref}: then the preview fails, and nothing is deleted."
    if one.along:
        return f"Write the name of {ref} as text instead of an output where it is used, and add dependsOn."
    return f"Omit metadata.name of {ref}: Pulumi then creates the new one first and deletes the old one last."


RULE = Rule("ST904", "pulumi-replace-deletes-first", check)
