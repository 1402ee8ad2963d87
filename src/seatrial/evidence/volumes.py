"""Which claims and volumes hold the data of an object, and what became of them. Read from the timeline."""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.history import GOING, live_before
from seatrial.graph import needs_of
from seatrial.model.release import Resource
from seatrial.model.resource import Ref, dig, listed, name_of
from seatrial.model.timeline import Event, Rehearsal

CLAIM = "PersistentVolumeClaim"
VOLUME = "PersistentVolume"


def volume_of(rehearsal: Rehearsal, step: int, claim: Ref) -> Ref | None:
    """The volume that a claim was bound to when a step began; there is none for a claim that nobody used."""
    name = dig(live_before(rehearsal, step, claim), "spec", "volumeName")
    return Ref(VOLUME, "", str(name)) if name else None


def claims_of(rehearsal: Rehearsal, step: int, owner: Resource) -> Iterator[Ref]:
    """The claims that a StatefulSet made from its templates, as far as they were there when a step began."""
    templates = listed(owner.body, "spec", "volumeClaimTemplates")
    prefixes = tuple(f"{name_of(template)}-{owner.ref.name}-" for template in templates)
    home = owner.ref.namespace
    for ref in sorted({e.object for e in rehearsal.timeline if e.object.kind == CLAIM and e.object.namespace == home}):
        ordinal = next((ref.name.removeprefix(prefix) for prefix in prefixes if ref.name.startswith(prefix)), "")
        if ordinal.isdigit() and live_before(rehearsal, step, ref) is not None:
            yield ref


def keeps_data(workload: Resource) -> bool:
    """Whether the pods of a workload have storage that outlives them."""
    claims = any(need.object.kind == CLAIM for need in needs_of(workload))
    return claims or bool(listed(workload.body, "spec", "volumeClaimTemplates"))


def gone(rehearsal: Rehearsal, step: int, refs: list[Ref]) -> list[Event]:
    """The last word on each of these that a step deleted."""
    last = {e.object: e for e in rehearsal.of_step(step) if e.object in refs and e.effect in GOING}
    return list(last.values())
