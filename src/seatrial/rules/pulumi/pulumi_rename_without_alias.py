"""A resource of a Pulumi program has another name, parent or type than before, and no alias: Pulumi takes it for new.

## What happens
Pulumi knows a resource by its URN: the names of project and stack, its type, the types of what it is in, and its name
in the program. Whoever renames it, moves it into a component, or has another chart resource render it, gives it
another URN. To Pulumi the old resource is gone and a new one has come.

It makes what is new first and deletes what is old at the end. An object that has its name from the program is still
there when it is to be made: `already exists`. The up fails, and so does every further one.

An object that has its name from Pulumi is made under another one, and the old one is deleted. Nothing fails. Of a claim
that is all its data, of a Namespace all that is in it.

## Example
```yaml
resources:
  database:                                       # was: db
    type: kubernetes:core/v1:PersistentVolumeClaim
    properties: {metadata: {name: shop-data}}
```

## Instead
Say under which name Pulumi knows it:

```yaml
    options:
      aliases: [{name: db}]
```

With another parent it is `aliases: [{parent: ...}]` or `{noParent: true}`; an alias of a component goes for all that is
in it. A whole URN, as `pulumi stack --show-urns` prints it, always does.

## Fix safety
An alias changes nothing in the cluster, and can go after one up.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from seatrial.evidence.history import GOING, cascade
from seatrial.evidence.moment import Moment, found, moments
from seatrial.model.finding import Finding, Rule
from seatrial.model.program import Program, Registration, short
from seatrial.model.release import Case
from seatrial.model.resource import Ref
from seatrial.model.timeline import Event, Rehearsal
from seatrial.phrases.recreated import HOLDS_DATA, LOST_MAX, lost_sentence, with_it

NAMED_MAX = 3


class Renamed(Struct, frozen=True):
    """A resource that was another one to Pulumi, and what became of that in the cluster."""

    old: Registration
    new: Registration
    event: Event


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
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
        pairs = list(_pairs(before.program, release.program))
        refused = list(_refused(moment, pairs))
        if refused:
            yield _in_the_way(moment, refused)
        told = list(_deleted(moment, pairs))
        yield from (_lost(moment, one) for one in told)
        if refused or told:
            return


def _pairs(old: Program, new: Program) -> Iterator[tuple[Registration, Registration]]:
    """Resources that are in one program only, and the one of the other that says the same."""
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
            if event.step == moment.index and event.actor == "pulumi" and event.message.endswith("already exists"):
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
    more = f" and {len(renamed) - 1} more alike" if len(renamed) > 1 else ""
    return found(
        RULE,
        moment,
        objects=[one.new.ref for one in renamed if one.new.ref],
        damage="failed-deploy",
        message=f"pulumi up fails: {first.new.ref}{more} was {_told(first.old)} and is now {_told(first.new)}, which "
        "Pulumi takes for a new resource",
        details=(
            f'The API server says: "{first.event.message}"',
            "Pulumi makes what is new before it deletes what is old, and both have one name. Every further up fails "
            "alike.",
            _alias(first),
        ),
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
        message=f"pulumi up deletes {one.old.ref}{with_it(lost)}: {_told(one.old)} is now {_told(one.new)}, which "
        "Pulumi takes for a new resource",
        details=(
            f"{one.new.ref} is made in its place, and is empty.",
            lost_sentence(moment, [event.object for event in lost]),
            _alias(one),
        ),
        places=[one.new.place] if one.new.place else [],
        evidence=[one.event, *lost[:LOST_MAX]],
        confirm="pulumi preview  # one to create, one to delete",
    )


def _told(one: Registration) -> str:
    """A resource as its program has it: by its name, or with what it is in where that is what differs."""
    around = one.parent.split("::")
    return f"{short(one.urn)} in {short(one.parent)}" if len(around) > 3 else short(one.urn)


def _alias(one: Renamed) -> str:
    return f'With aliases: ["{one.old.urn}"] in its options it is the one that Pulumi knows, and nothing is done.'


RULE = Rule("ST906", "pulumi-rename-without-alias", check)
