"""An up that follows a failed one makes an object anew and deletes it again at its end.

## What happens
Pulumi replaces an object that has a name of the program's by deleting it first. When the creation that should follow
is refused, by a webhook say, the up fails, and Pulumi remembers that the object is still to be replaced.

The next up comes back to it. If the program asks for another object than the one that was deleted, all is well: the new
one is made. But if nothing differs from what was deleted, because the change was taken back, or because the object had
only gone along with another one that was replaced, Pulumi falls back to its usual order: it makes the new object first
and deletes the old one at the end. The old one is gone already. By its name the new one is found, and deleted.

The up ends well. In the state of the stack the object is there, so later ones change nothing, and it stays away.

## Example
```yaml
resources:
  web:
    type: kubernetes:apps/v1:Deployment
    properties:
      metadata: {name: web}                        # was deleted along with a ConfigMap, and then refused
      spec: ...                                    # as before
```

## Instead
Before the next up, say `deleteBeforeReplace: true` in the options of the resource: then Pulumi knows that the old one
is gone. Or take it out of the state with `pulumi state delete`, and it is made like a new one. Where it has happened
already, `pulumi refresh` finds that it is not there, and the up after that makes it.

## Fix safety
The option can stay: an object with a name of its own is replaced in that order anyway.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.history import GOING
from seatrial.evidence.moment import Moment, found, moments
from seatrial.model.finding import Damage, Finding, Rule
from seatrial.model.program import Registration
from seatrial.model.release import Case
from seatrial.model.timeline import Event, Rehearsal
from seatrial.phrases.objects import in_kubectl
from seatrial.phrases.recreated import HOLDS_DATA


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    for moment in moments(rehearsal, case):
        release = moment.release if moment.index < len(case.releases) else None
        if moment.ended.action != "up" or release is None or release.program is None:
            continue
        for one in release.program.registrations:
            deeds = _deeds(moment, one)
            if [event.effect == "created" for event in deeds] == [True, False] and _is_gone(moment, one):
                yield _finding(moment, one, deeds)


def _deeds(moment: Moment, one: Registration) -> list[Event]:
    """What Pulumi made and deleted of a resource in a step, in order."""
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
        message=f"pulumi up makes {one.ref} and deletes it again, since an up before had deleted it and then failed",
        details=(
            "Pulumi remembers that it is still to be replaced, and nothing in it differs from what was deleted: so the "
            "new one is made first, and what Pulumi takes for the old one is deleted at the end, by its name.",
            "The up ends well, and the next one changes nothing: in the state of the stack the object is there.",
            "With deleteBeforeReplace: true in its options Pulumi knows that the old one is gone. Where it has "
            "happened: pulumi refresh, and then another up.",
        ),
        places=[one.place] if one.place else [],
        evidence=deeds,
        confirm=f"kubectl get {in_kubectl(one.ref)}  # not found, after an up that went well",
    )


RULE = Rule("ST905", "pulumi-deletes-the-replacement", check)
