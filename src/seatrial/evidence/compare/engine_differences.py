"""Where engines treat an object of one release differently."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from seatrial.evidence.history import GOING
from seatrial.helm import argocd_hooks, hooks
from seatrial.model.release import Case, Resource
from seatrial.model.resource import Pointer, Ref, Resolve, annotations_of
from seatrial.model.result import RenderedDifference
from seatrial.model.timeline import ORDINARY, Rehearsal

ENDS = ("uninstall", "delete", "destroy")
RUNS = ("Job", "Pod")


class ComparedRehearsal(Struct, frozen=True):
    """One rehearsal with its case."""

    rehearsal: Rehearsal
    case: Case

    @property
    def engine(self) -> str:
        return self.rehearsal.engine.name


class Fate(Struct, frozen=True):
    """What an engine does with an object during a trial."""

    made: bool = False
    again: str = ""
    """What it does when the same input is deployed again."""
    stays: bool = False
    """Whether it still exists after the release is removed."""


def contrasts(seen: Sequence[ComparedRehearsal], resolve: Resolve) -> Iterator[RenderedDifference]:
    """The objects that engines treat differently, if all of them completed the same steps."""
    played = {one.rehearsal.engine: one for one in seen if one.rehearsal.schedule == ORDINARY and not one.case.name}
    lengths = {len(one.rehearsal.steps) for one in played.values()}
    well = all(ended.outcome == "ok" for one in played.values() for ended in one.rehearsal.steps)
    if len(played) < 2 or len(lengths) > 1 or not well:
        return
    written = {resource.ref: resource for one in played.values() for resource in one.case.all_resources()}
    for ref, resource in sorted(written.items()):
        states = tuple((f"under {name}", _treatment(one, resource)) for name, one in played.items())
        if len({state for _, state in states}) > 1:
            yield RenderedDifference(str(ref), states, resolve(_pointer(resource)))


def not_contrasted(seen: Sequence[ComparedRehearsal]) -> Iterator[str]:
    """Why engine differences are not shown."""
    engines = dict.fromkeys(str(one.rehearsal.engine) for one in seen)
    plain = [one for one in seen if not one.case.name and one.rehearsal.schedule == ORDINARY]
    broken = [str(one.rehearsal.engine) for one in plain if any(s.outcome != "ok" for s in one.rehearsal.steps)]
    if len(engines) > 1 and broken:
        yield f"engine differences not shown: {', '.join(broken)} did not complete all steps"


def _treatment(one: ComparedRehearsal, resource: Resource) -> str:
    """What happens to an object, in words."""
    fate = _fate(one, resource.ref)
    if not fate.made:
        events = ", ".join(hooks.events_of(resource.body))
        left_out = one.engine == "argocd" or not events
        return "skipped" if left_out else f"a hook for {events}"
    return f"{fate.again} and {'left behind' if fate.stays else 'deleted with the release'}"


def _fate(one: ComparedRehearsal, ref: Ref) -> Fate:
    made = _is_made(one, ref, before=len(one.rehearsal.steps))
    again = next(_same_again(one), None)
    stays = any(ref in ended.orphans for ended in one.rehearsal.steps if ended.action in ENDS)
    return Fate(made, _again(one, again, ref) if again is not None else "created once", stays)


def _same_again(one: ComparedRehearsal) -> Iterator[int]:
    """The steps that deploy the input of the step before again."""
    for step in range(1, len(one.rehearsal.steps)):
        before, now = one.case.releases[step - 1], one.case.releases[step]
        alike = before is not None and now is not None and (before.source, before.values) == (now.source, now.values)
        if alike and one.rehearsal.steps[step].action not in ENDS:
            yield step


def _again(one: ComparedRehearsal, step: int, ref: Ref) -> str:
    effects = [e.effect for e in one.rehearsal.of_step(step) if e.object == ref and e.actor == one.engine]
    done = "run" if ref.kind in RUNS else "created"
    if "created" in effects and not _is_made(one, ref, before=step):
        return f"{done} from the second time on"
    if "created" in effects:
        gone = any(effect in GOING for effect in effects) and done == "created"
        return "recreated each time" if gone else f"{done} each time"
    return "updated each time" if "changed" in effects else f"{done} once"


def _is_made(one: ComparedRehearsal, ref: Ref, *, before: int) -> bool:
    """Whether the engine created an object in an earlier step."""
    events = (e for e in one.rehearsal.timeline if e.object == ref and e.actor == one.engine)
    return any(event.effect == "created" and event.step < before for event in events)


def _pointer(resource: Resource) -> Pointer:
    keys = (argocd_hooks.HOOK, hooks.HOOK)
    key = next((key for key in keys if key in annotations_of(resource.body)), None)
    return resource.place("metadata", "annotations", key) if key else resource.place("metadata", "name")
