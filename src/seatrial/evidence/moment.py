"""A step as a rule sees it: how it ended, what was released and what was live, before and after."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from seatrial.model.engine import EngineId
from seatrial.model.finding import Certainty, Damage, Finding, Invariant, Rule
from seatrial.model.release import Case, Release
from seatrial.model.resource import Body, Place, Pointer, Ref, line
from seatrial.model.timeline import Event, Rehearsal, StepResult


class Moment(Struct, frozen=True):
    """One step of one rehearsal, with the releases its author wrote."""

    rehearsal: Rehearsal
    case: Case
    index: int

    @property
    def ended(self) -> StepResult:
        return self.rehearsal.steps[self.index]

    @property
    def engine(self) -> EngineId:
        return self.rehearsal.engine

    @property
    def release(self) -> Release | None:
        """What this step deploys."""
        return self.case.releases[self.index]

    @property
    def before(self) -> Release | None:
        """The release that is deployed when the step begins, if the engine succeeded with it."""
        return _deployed_before(self.rehearsal, self.case, self.index)

    @property
    def act(self) -> str:
        """`helm upgrade`, `the sync`."""
        return self.ended.act

    @property
    def speaker(self) -> str:
        """Who acts: `Helm`, or kubectl for a step that a user runs in between."""
        return self.ended.by

    @property
    def says(self) -> str:
        """The words with which the step ended: `kubectl says: "..."`."""
        return f'{self.speaker} reports: "{self.ended.error.strip()}"'

    def events(self) -> Iterator[Event]:
        return self.rehearsal.of_step(self.index)

    def live(self, ref: Ref) -> Body | None:
        """The object when the step had ended and the cluster had settled."""
        return _last_body(event for event in self.rehearsal.of_object(ref) if event.step <= self.index)

    def was(self, ref: Ref) -> Body | None:
        """The object when the step began."""
        return _last_body(event for event in self.rehearsal.of_object(ref) if event.step < self.index)

    def at(self, index: int) -> Moment:
        """Another step of the same rehearsal."""
        return Moment(self.rehearsal, self.case, index)


def moments(rehearsal: Rehearsal, case: Case) -> Iterator[Moment]:
    """Every step, in order."""
    return (Moment(rehearsal, case, index) for index in range(len(rehearsal.steps)))


def found(
    rule: Rule | Invariant,
    moment: Moment,
    *,
    objects: Iterable[Ref],
    damage: Damage,
    message: str,
    details: Iterable[str] = (),
    places: Iterable[Pointer | Place] = (),
    evidence: Iterable[Event] = (),
    confirm: str = "",
    certainty: Certainty = "will",
    cause: str = "",
    removal: bool = False,
    way_out: Iterable[str] = (),
    recover: str = "",
) -> Finding:
    """A finding of one rehearsal. Empty details are left out; `will` holds only if every schedule agrees."""
    return Finding(
        rule=rule.name,
        code=rule.code,
        certainty=certainty,
        damage=damage,
        engines=(moment.engine,),
        action=moment.ended.action,
        objects=tuple(objects),
        message=message,
        details=tuple(filter(None, (*details, simulated(moment)))),
        pointers=tuple(dict.fromkeys(line(one) if isinstance(one, Place) else one for one in places)),
        evidence=tuple(event.index for event in evidence),
        confirm=confirm,
        way_out=tuple(filter(None, way_out)),
        recover=recover,
        schedules=(moment.rehearsal.schedule,),
        timeless=isinstance(rule, Rule) and rule.timeless,
        step=moment.index,
        cause=cause,
        removal=removal,
        removes=moment.ended.role == "remove",
    )


def simulated(moment: Moment) -> str:
    """The sentence about a next version, which nobody wrote; empty for an input as it is."""
    if not moment.ended.next_version:
        return ""
    raised = "its version, its appVersion and the image tags of its values are raised"
    return f"The next version {moment.ended.next_version} is simulated: the same chart, of which {raised}."


def _deployed_before(rehearsal: Rehearsal, case: Case, step: int) -> Release | None:
    """The release that is in the cluster when a step begins, as far as the engine succeeded with it."""
    begun = rehearsal.steps[step]
    if not begun.release:
        return _applied_before(rehearsal, case, step)
    for index in range(step - 1, -1, -1):
        ended = rehearsal.steps[index]
        if "ok" not in (ended.outcome, ended.again):
            continue
        if (ended.release, ended.namespace) != (begun.release, begun.namespace):
            continue
        if ended.action in ("uninstall", "delete"):
            return None
        if (release := case.releases[index]) is not None:
            return release
    before = case.before
    return before if before and (before.name, before.namespace) == (begun.release, begun.namespace) else None


def _applied_before(rehearsal: Rehearsal, case: Case, step: int) -> Release | None:
    """All that was applied without being a release, as one: each object as it was written last."""
    steps = zip(rehearsal.steps[:step], case.releases, strict=False)
    applied = [release for ended, release in steps if release is not None and not ended.release]
    if len(applied) < 2:
        return applied[0] if applied else None
    written = {resource.ref: resource for release in applied for resource in release.resources}
    return replace(applied[-1], resources=tuple(written.values()))


def _last_body(events: Iterator[Event]) -> Body | None:
    body: Body | None = None
    for event in events:
        if event.effect == "deleted":
            body = None
        elif event.after is not None and event.effect != "said":
            body = event.after
    return body
