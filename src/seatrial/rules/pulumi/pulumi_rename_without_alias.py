"""A Pulumi resource has a new name, parent or type and no alias, so Pulumi treats it as a new resource.

## What happens
Pulumi identifies a resource by its URN: project, stack, its type, the types of its parents, and its name in the
program. Renaming it, moving it into a component, or rendering it with another chart resource changes the URN. For
Pulumi the old resource is removed and a new one is added.

Pulumi creates new resources first and deletes old ones at the end. An object whose name the program sets still exists
when it is to be created: `already exists`. The up fails, and so does every further one.

An object whose name Pulumi generates is created under another name, and the old one is deleted. Nothing fails. A PVC
loses its data, a Namespace all its content.

## Example
```yaml
resources:
  database:                                       # was: db
    type: kubernetes:core/v1:PersistentVolumeClaim
    properties: {metadata: {name: shop-data}}
```

## Instead
Add the old name as an alias:

```yaml
    options:
      aliases: [{name: db}]
```

For another parent use `aliases: [{parent: ...}]` or `{noParent: true}`; an alias of a component applies to everything
in it. A whole URN, as `pulumi stack --show-urns` prints it, always works.

## Fix safety
An alias changes nothing in the cluster, and can be removed after one up.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from seatrial.evidence.history import GOING, cascade
from seatrial.evidence.moment import Moment, found
from seatrial.evidence.pulumi.programs import changed_programs
from seatrial.model.finding import Finding, Rule
from seatrial.model.program import Program, Registration, short
from seatrial.model.release import Case
from seatrial.model.resource import Ref
from seatrial.model.timeline import Event, Rehearsal
from seatrial.phrases.programs import option
from seatrial.phrases.recreated import HOLDS_DATA, LOST_MAX, lost_sentence, with_it

NAMED_MAX = 3


class Renamed(Struct, frozen=True):
    """A resource whose URN changed, and what happened to its old object."""

    old: Registration
    new: Registration
    event: Event


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    for moment, before, program in changed_programs(rehearsal, case):
        pairs = list(_pairs(before, program))
        refused = list(_refused(moment, pairs))
        if refused:
            yield _in_the_way(moment, refused)
        deleted = list(_deleted(moment, pairs))
        yield from (_lost(moment, one) for one in deleted)
        if refused or deleted:
            return


def _pairs(old: Program, new: Program) -> Iterator[tuple[Registration, Registration]]:
    """Pairs of resources that are in one program only and describe the same object."""
    known, wanted = {one.urn for one in old.registrations}, {one.urn for one in new.registrations}
    gone = [one for one in old.registrations if one.ref is not None and one.urn not in wanted]
    for one in new.registrations:
        if one.ref is None or one.urn in known or not known.isdisjoint(one.aliases):
            continue
        same = [other for other in gone if other.ref == one.ref or (one.auto_named and _says_the_same(other, one))]
        if len(same) == 1:
            yield same[0], one


def _says_the_same(one: Registration, other: Registration) -> bool:
    return one.auto_named and one.inputs == other.inputs and one.type == other.type


def _refused(moment: Moment, pairs: list[tuple[Registration, Registration]]) -> Iterator[Renamed]:
    for old, new in pairs:
        for event in moment.rehearsal.of_object(new.ref) if new.ref else ():
            exists = event.refusal is not None and event.refusal.reason == "AlreadyExists"
            if event.step == moment.index and event.actor == "pulumi" and exists:
                yield Renamed(old, new, event)
                break


def _deleted(moment: Moment, pairs: list[tuple[Registration, Registration]]) -> Iterator[Renamed]:
    for old, new in pairs:
        if old.ref is None or old.ref == new.ref or old.ref.kind not in HOLDS_DATA:
            continue
        for event in moment.rehearsal.of_object(old.ref):
            if event.step == moment.index and event.actor == "pulumi" and event.effect in GOING:
                yield Renamed(old, new, event)
                break


def _in_the_way(moment: Moment, renamed: list[Renamed]) -> Finding:
    first = renamed[0]
    more = f" and {len(renamed) - 1} more" if len(renamed) > 1 else ""
    return found(
        RULE,
        moment,
        objects=[one.new.ref for one in renamed if one.new.ref],
        damage="failed-deploy",
        message=f"pulumi up fails: {first.new.ref}{more} was {_label(first.old)} and is now {_label(first.new)}",
        details=(
            "Pulumi treats the new name as a new resource.",
            f'The API server rejects it: "{first.event.message}"',
            "Pulumi creates new resources before it deletes old ones, and both have the same name. Every further up "
            "fails the same way.",
        ),
        way_out=(_alias(first),),
        places=[one.new.place for one in renamed[:NAMED_MAX] if one.new.place],
        evidence=[one.event for one in renamed[:NAMED_MAX]],
        confirm="pulumi preview  # one to create, one to delete",
    )


def _lost(moment: Moment, one: Renamed) -> Finding:
    lost = [event for event in cascade(moment.rehearsal, one.event) if event.object.kind != "PersistentVolume"]
    objects: list[Ref] = [ref for ref in (one.old.ref, one.new.ref) if ref]
    return found(
        RULE,
        moment,
        objects=objects,
        damage="data-loss",
        message=f"pulumi up deletes {one.old.ref}{with_it(lost)}: {_label(one.old)} is now {_label(one.new)}",
        details=(
            "Pulumi treats the new name as a new resource.",
            f"{one.new.ref} replaces it, and is empty.",
            lost_sentence(moment, [event.object for event in lost]),
        ),
        way_out=(_alias(one),),
        places=[one.new.place] if one.new.place else [],
        evidence=[one.event, *lost[:LOST_MAX]],
        confirm="pulumi preview  # one to create, one to delete",
    )


def _label(one: Registration) -> str:
    """A resource by its name in the program, with its parent if it has one."""
    around = one.parent.split("::")
    return f"{short(one.urn)} in {short(one.parent)}" if len(around) > 3 else short(one.urn)


def _alias(one: Renamed) -> str:
    urn, file = one.old.urn, one.new.place.file if one.new.place else ""
    words = option(file, f'aliases=["{urn}"]', f'aliases: ["{urn}"]')
    return f"Give {one.new.ref} {words}: Pulumi then recognizes it, and changes nothing."


RULE = Rule("ST906", "pulumi-rename-without-alias", check)
