"""Which PVCs and volumes hold the data of an object, and whether a step deleted them."""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.history import GOING
from seatrial.evidence.moment import Moment
from seatrial.graph import needs_of
from seatrial.model.release import Resource
from seatrial.model.resource import Ref, dig, listed, name_of
from seatrial.model.timeline import Event

CLAIM = "PersistentVolumeClaim"
VOLUME = "PersistentVolume"


def volume_of(moment: Moment, claim: Ref) -> Ref | None:
    """The volume that a PVC was bound to when the step began; an unused PVC has none."""
    name = dig(moment.was(claim), "spec", "volumeName")
    return Ref(VOLUME, "", str(name)) if name else None


def claims_of(moment: Moment, owner: Resource) -> Iterator[Ref]:
    """The PVCs from the templates of a StatefulSet that existed when the step began."""
    templates = listed(owner.body, "spec", "volumeClaimTemplates")
    prefixes = tuple(f"{name_of(template)}-{owner.ref.name}-" for template in templates)
    home = owner.ref.namespace
    for ref in sorted(
        {e.object for e in moment.rehearsal.timeline if e.object.kind == CLAIM and e.object.namespace == home}
    ):
        ordinal = next((ref.name.removeprefix(prefix) for prefix in prefixes if ref.name.startswith(prefix)), "")
        if ordinal.isdigit() and moment.was(ref) is not None:
            yield ref


def keeps_data(workload: Resource) -> bool:
    """Whether the pods of a workload have storage that outlives them."""
    claims = any(need.object.kind == CLAIM for need in needs_of(workload))
    return claims or bool(listed(workload.body, "spec", "volumeClaimTemplates"))


def gone(moment: Moment, refs: list[Ref]) -> list[Event]:
    """The last deletion event of each of these objects in the step."""
    last = {e.object: e for e in moment.events() if e.object in refs and e.effect in GOING}
    return list(last.values())
