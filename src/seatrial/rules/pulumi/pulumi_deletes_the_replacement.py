"""After a failed `pulumi up`, the next one recreates an object and deletes it again at the end.

## What happens
Pulumi replaces an object whose name the program sets by deleting it first. If the creation that follows is rejected,
for example by a webhook, the up fails, and the state of the stack says that the object still has to be replaced.

The next up continues with it. If the object in the program differs from the deleted one, Pulumi creates it. But if
nothing differs, because the change was reverted, or because the object was only deleted along with another one, Pulumi
falls back to its usual order: it creates the new object first and deletes the old one at the end. The old one is
already gone, and the new one has the same name, so Pulumi deletes the new one.

The up succeeds. In the state of the stack the object exists, so later runs change nothing, and it stays deleted.

## Example
```yaml
resources:
  web:
    type: kubernetes:apps/v1:Deployment
    properties:
      metadata: {name: web}                        # was deleted along with a ConfigMap, and then rejected
      spec: ...                                    # as before
```

## Instead
Before the next up, set `deleteBeforeReplace: true` in the options of the resource: then Pulumi knows that the old one
is gone. Or remove it from the state with `pulumi state delete`, so that it is created as new. If it has already
happened, `pulumi refresh` finds that it is missing, and the next up creates it.

## Fix safety
The option can stay: an object with a fixed name is replaced in that order anyway.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.history import GOING
from seatrial.evidence.moment import Moment, found
from seatrial.evidence.pulumi.programs import programs
from seatrial.model.finding import Damage, Finding, Rule
from seatrial.model.program import Registration
from seatrial.model.release import Case
from seatrial.model.timeline import Event, Rehearsal
from seatrial.phrases.objects import in_kubectl
from seatrial.phrases.recreated import HOLDS_DATA


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    for moment, program in programs(rehearsal, case):
        if moment.ended.action != "up":
            continue
        for one in program.registrations:
            deeds = _deeds(moment, one)
            if [event.effect == "created" for event in deeds] == [True, False] and _is_gone(moment, one):
                yield _finding(moment, one, deeds)


def _deeds(moment: Moment, one: Registration) -> list[Event]:
    """Pulumi's creations and deletions of a resource in a step, in order."""
    events = moment.rehearsal.of_object(one.ref) if one.ref else ()
    effects = (*GOING, "created")
    return [
        event for event in events if event.step == moment.index and event.actor == "pulumi" and event.effect in effects
    ]


def _is_gone(moment: Moment, one: Registration) -> bool:
    return one.ref is not None and moment.live(one.ref) is None


def _finding(moment: Moment, one: Registration, deeds: list[Event]) -> Finding:
    assert one.ref is not None
    damage: Damage = "data-loss" if one.ref.kind in HOLDS_DATA else "outage"
    return found(
        RULE,
        moment,
        objects=[one.ref],
        damage=damage,
        message=f"pulumi up creates {one.ref} and deletes it again: an earlier up deleted it, then failed",
        details=(
            "Pulumi remembers that it has to be replaced, and nothing differs from the deleted object: so it creates "
            "the new one first, and at the end deletes what it considers the old one, by name.",
            "The up succeeds, and the next one changes nothing: in the state of the stack the object exists.",
        ),
        recover="run pulumi refresh, then pulumi up: the refresh finds that it is missing.",
        places=[one.place] if one.place else [],
        evidence=deeds,
        confirm=f"kubectl get {in_kubectl(one.ref)}  # not found, after a successful up",
    )


RULE = Rule("ST905", "pulumi-deletes-the-replacement", check)
