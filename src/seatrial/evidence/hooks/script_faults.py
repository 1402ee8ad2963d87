"""Scripts that fail or never end whatever the cluster does."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from seatrial.evidence.hooks.runs import acted_on, is_of
from seatrial.evidence.moment import Moment
from seatrial.kinds.scripts.containers import faults
from seatrial.kinds.scripts.run_state import Course
from seatrial.kinds.workloads.pod_template import Path
from seatrial.model.release import Case, Resource
from seatrial.model.resource import Ref, dig
from seatrial.model.timeline import Event, Rehearsal

SPECS: dict[str, Path] = {"Job": ("spec", "template", "spec"), "Pod": ("spec",)}


class ScriptFault(Struct, frozen=True):
    step: int
    owner: Resource
    field: Path
    """The container."""
    course: Course
    ran: Event
    """The creation of the pod that shows it."""


def script_faults(rehearsal: Rehearsal, case: Case) -> Iterator[ScriptFault]:
    """Each Job whose script must fail or never ends, in the first step in which it ran."""
    seen: set[Ref] = set()
    acted = ((step, acted_on(case, step)) for step in range(len(rehearsal.steps)))
    scripted = {step: [r for r in release.resources if r.ref.kind in SPECS] for step, release in acted if release}
    for event in rehearsal.timeline:
        if event.object.kind != "Pod" or event.effect != "created" or event.after is None or event.step < 0:
            continue
        owner = next((r for r in scripted.get(event.step, ()) if is_of(event.object, event.after, r.ref)), None)
        if owner is None or owner.ref in seen:
            continue
        at = SPECS[owner.ref.kind]
        for place, course in faults(dig(owner.body, *at) or {}, owner.ref.namespace):
            if (course.unset or course.code is None) and _did(rehearsal, case, event, course):
                seen.add(owner.ref)
                yield ScriptFault(event.step, owner, (*at, *place), course, event)
                break


def _did(rehearsal: Rehearsal, case: Case, ran: Event, course: Course) -> bool:
    """Whether its pod ran the script: it may never have started."""
    if course.code is None:
        return bool(dig(Moment(rehearsal, case, ran.step).live(ran.object), "status", "phase") == "Running")
    said = (e for e in rehearsal.of_object(ran.object) if e.index >= ran.index and e.effect == "said")
    return any(event.message == course.says for event in said)
