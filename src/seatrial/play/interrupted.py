"""Kills each step of a trial after each of its writes, repeats the step, and tries ways out. On an ordinary cluster.

Decides nothing about hazards. Knows no engine by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from seatrial.cluster.death import CUT
from seatrial.engines.act import HelmAct
from seatrial.engines.engine import PlannedStep, WayOut, load
from seatrial.model import lazy_re
from seatrial.model.interruption import Aftermath, Interrupted, Interruption
from seatrial.model.resource import Ref
from seatrial.model.timeline import ORDINARY, Event, Rehearsal, StepResult
from seatrial.plan.plan import Plan
from seatrial.play.fields_left import Contents, fields_left
from seatrial.play.heard import Heard
from seatrial.play.rehearse import rehearse

MOMENTS_MAX = 24
"""How many moments of a step are tried, if it has more writes."""
AT_ONCE = 4
WRITES = ("create", "update", "patch", "apply", "delete")
DEPLOYS = ("install", "replace")
LOCKS = ("operation-in-progress", "name-in-use")
RUNS_ONCE = ("Job", "Pod", "Workflow", "PipelineRun")
"""Kinds of objects that end: which of them are left is no difference."""
TURNING_POINTS = frozenset(
    (
        "APIService",
        "CustomResourceDefinition",
        "Job",
        "MutatingWebhookConfiguration",
        "Namespace",
        "PersistentVolumeClaim",
        "Pod",
        "Secret",
        "ValidatingWebhookConfiguration",
    )
)
"""Kinds after whose writes, and before them, every moment is tried. Between others, moments are alike."""
GENERATED = lazy_re.compile(r"-[0-9a-f]{8}(?=-|$)")
"""In a name: what Pulumi adds to names that a program leaves to it."""

Steps = tuple[PlannedStep[Any], ...]


def interrupted(
    plan: Plan, heard: Heard, progress: Callable[[str], None], answer: str = "", moments_max: int = MOMENTS_MAX
) -> Iterator[Interrupted]:
    """Every step that deploys the newest source, the rollback and the removal, if they work undisturbed.

    With an `answer` no step dies, and one of its writes is answered so; only of steps that replace what is there. If a
    first install fails, for whatever reason, its release must be removed before the next one.
    """
    recorded = heard.first()
    for index, before in _chosen(plan):
        progress(f"interrupt {plan.steps[index].step.action} of {plan.case.name or 'the release'}")
        died = _Step(plan, before, plan.steps[index], index, answer, moments_max)
        if answer and (not before or died.role not in ("replace", "back")):
            continue
        usual = died.rehearse((died.step, *died.back), recorded if before == plan.steps[:index] else Heard())
        if any(step.outcome != "ok" for step in usual.steps[: died.at + 1]):
            if not answer:
                yield _of_step(died, usual)
            continue
        if (found := _tried(died, usual)) is not None:
            yield found


def _chosen(plan: Plan) -> Iterator[tuple[int, Steps]]:
    """The steps to interrupt, each with the steps that must come before it."""
    actions = [load(planned.by).action(planned.step.action) for planned in plan.steps]
    roles = [action.role if action else "other" for action in actions]
    newest = [one.step.source for one, role in zip(plan.steps, roles, strict=True) if role in DEPLOYS][-1:]
    seen: set[tuple[str, bool]] = set()
    deployed = bool(plan.deployed)
    for index, (planned, role) in enumerate(zip(plan.steps, roles, strict=True)):
        key, wanted = (planned.step.action, deployed), role in ("back", "remove") or planned.step.source in newest
        if role != "other" and wanted and key not in seen and not planned.step.kill and not planned.step.fresh:
            seen.add(key)
            alone = role in DEPLOYS and not deployed and not plan.deployed
            yield index, () if alone else plan.steps[:index]
        deployed = role != "remove" if role != "other" else deployed


class _Rehearsed(NamedTuple):
    timeline: Rehearsal
    contents: Mapping[int, Contents]
    """The objects after each step."""

    @property
    def steps(self) -> tuple[StepResult, ...]:
        return self.timeline.steps


class _Step(Struct, frozen=True):
    """A step that dies, and what comes before it."""

    plan: Plan
    before: Steps
    step: PlannedStep[Any]
    index: int
    answer: str = ""
    moments_max: int = MOMENTS_MAX

    @property
    def at(self) -> int:
        return len(self.before)

    @property
    def role(self) -> str:
        action = load(self.step.by).action(self.step.step.action)
        return action.role if action else "other"

    def ways_out(self, wrote: Ref) -> list[WayOut]:
        return list(load(self.step.by).ways_out(self.plan.steps, self.index, wrote))

    @property
    def repetition(self) -> WayOut:
        """The same once more: by then the cluster may have done what the step did not wait for."""
        engine = load(self.step.by)
        action = engine.action(self.step.step.action)
        if engine.repeats:
            return WayOut((engine.repeats(self.step),), (self.step,))
        return WayOut((f"{action.words if action else self.step.step.action}, a third time",), (self.step,))

    @property
    def back(self) -> Steps:
        """A step that undoes this one: a rollback, or what was deployed before."""
        if self.role != "replace" or not self.before:
            return ()
        if ways := self.ways_out(Ref("", "", "")):
            return ways[0].steps[:1]
        old = [one for one in self.before if one.step.action == self.step.step.action]
        return tuple(old[-1:]) if old and old[-1].step.source != self.step.step.source else ()

    def rehearse(self, steps: Steps, heard: Heard) -> _Rehearsed:
        every = (*self.before, *steps)
        case = replace(self.plan.case, releases=tuple(one.release for one in every))
        contents: dict[int, Contents] = {}
        plan = replace(self.plan, steps=every, case=case)
        return _Rehearsed(rehearse(plan, ORDINARY, heard=heard, contents=contents), contents)

    def killed(self, write: int) -> PlannedStep[Any]:
        when = f"{self.answer}@{write}" if self.answer else str(write)
        return replace(self.step, step=replace(self.step.step, kill=when))


def _tried(died: _Step, usual: _Rehearsed) -> Interrupted | None:
    actors = usual.timeline.actors
    writes = [event for event in usual.timeline.of_step(died.at) if _is_write(event, actors)]
    # After its last write it has ended, unless it gets an answer, or still has to remember that.
    moments = writes if died.answer or load(died.step.by).keeps_state else writes[:-1]
    chosen = _moments(moments, died.moments_max) if died.answer != CUT else _watched(writes, died)
    if not chosen:
        return None
    recorded = Heard()
    died.rehearse((died.step,), recorded)

    def tried(write: int) -> Interruption:
        return _aftermath(died, usual, writes[write - 1], write, recorded)

    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="interrupted") as pool:
        found = tuple(pool.map(tried, chosen))
    possible = len(chosen) if died.answer == CUT else len(moments)
    return replace(_of_step(died, usual), writes=len(writes), possible=possible, moments=found)


def _of_step(died: _Step, usual: _Rehearsed) -> Interrupted:
    """A step of which no moment was tried."""
    ended = usual.steps[died.at]
    return Interrupted(
        engine=usual.timeline.engine,
        label=usual.timeline.label,
        case=died.plan.case.name,
        step=died.index,
        action=ended.action,
        act=ended.act,
        role=ended.role,
        release=ended.release,
        namespace=ended.namespace,
        writes=0,
        possible=0,
        moments=(),
        answer=died.answer,
    )


def _is_write(event: Event, actors: Sequence[str]) -> bool:
    wrote = event.effect in ("created", "changed", "unchanged", "deleting", "deleted")
    return wrote and event.actor in actors and event.verb in WRITES and event.cause is None


def _moments(writes: Sequence[Event], most: int) -> list[int]:
    """The writes after which the step is killed: all, or the turning points and some between them."""
    every = list(range(1, len(writes) + 1))
    if len(every) <= most:
        return every
    turns = [k for k in every if k in (1, len(writes)) or _turns(writes[k - 1]) or _turns(writes[k])]
    kept = set(turns[:: -(-len(turns) // most)])
    others = [k for k in every if k not in kept]
    free = most - len(kept)
    return sorted(kept | set(others[:: -(-len(others) // free)] if free else ()))


def _watched(writes: Sequence[Event], died: _Step) -> list[int]:
    """The first writes after which a real client watches what it wrote. Scripts of engines have no connections."""
    if not isinstance(died.step.act, HelmAct) or died.step.act.simulated:
        return []
    created = (k for k, event in enumerate(writes, 1) if event.object.kind in RUNS_ONCE and event.effect == "created")
    return [*islice(created, died.moments_max)]


def _turns(event: Event) -> bool:
    return event.object.kind in TURNING_POINTS or event.verb == "delete"


def _aftermath(died: _Step, usual: _Rehearsed, event: Event, write: int, recorded: Heard) -> Interruption:
    """Kill the step after a write, repeat it, and see what that leads to."""
    ways = died.ways_out(event.object)
    first = (died.killed(write), died.step)
    after = (*first, *(ways[0].steps if ways else died.back))
    rehearsal = died.rehearse(after, recorded)
    again = rehearsal.steps[died.at + 1]
    moment = Interruption(write, event.verb, event.object, "safe")
    if again.outcome == "ok":
        return _with_way_out(_compared(moment, died, usual, rehearsal), ways, died, usual, rehearsal)
    moment = replace(moment, aftermath=_refused(again), error=again.error, act=again.act)
    is_gone = not ways or any(fault.of == "no-release" for fault in again.failure.faults)
    if died.role == "remove" and is_gone and _differences(usual, died.at, rehearsal, died.at + 1) == ((), ()):
        return replace(moment, aftermath="safe")  # It fails because what it deletes is gone.
    for way in ways if moment.aftermath == "locked" else [*ways, died.repetition]:
        if way not in ways[:1]:
            rehearsal = died.rehearse((*first, *way.steps), recorded)
        if _is_as_usual(died, usual, rehearsal):
            return replace(moment, way_out=way.commands)
        ends = (step.error for step in rehearsal.steps[died.at + 2 :] if step.outcome != "ok")
        moment = replace(moment, blocked_by=moment.blocked_by or next(ends, "it leaves other objects"))
    return moment


def _refused(again: StepResult) -> Aftermath:
    if any(fault.of in LOCKS for fault in again.failure.faults):
        return "locked"
    return "hangs" if again.outcome == "hung" else "fails"


def _with_way_out(
    moment: Interruption, ways: Sequence[WayOut], died: _Step, usual: _Rehearsed, rehearsal: _Rehearsed
) -> Interruption:
    """What is lost or left over by a step that was repeated may be repaired by the first way out, which followed."""
    if moment.aftermath not in ("loses", "leaves") or not ways or not _is_as_usual(died, usual, rehearsal):
        return moment
    return replace(moment, way_out=ways[0].commands)


def _compared(moment: Interruption, died: _Step, usual: _Rehearsed, rehearsal: _Rehearsed) -> Interruption:
    """The step was repeated and ended: with the same objects, and a rollback of it as well?"""
    lost, left = _differences(usual, died.at, rehearsal, died.at + 1)
    if moment.verb == "create" and [*map(_kind_in, left)] == [_kind_in(moment.object)]:
        left = (moment.object,)  # The other one has a generated name as well, and the engine knows it.
    if lost or left:
        return replace(moment, aftermath="loses" if lost else "leaves", lost=lost, left=left)
    if fields := _fields(died, usual, rehearsal, died.at + 1):
        return replace(moment, aftermath="leaves", fields=fields)
    if died.back and usual.steps[-1].outcome == "ok" and (back := rehearsal.steps[died.at + 2]).outcome != "ok":
        return replace(moment, aftermath="hangs" if back.outcome == "hung" else "fails", error=back.error, act=back.act)
    return moment


def _kind_in(ref: Ref) -> tuple[str, str]:
    return ref.kind, ref.namespace


def _is_as_usual(died: _Step, usual: _Rehearsed, rehearsal: _Rehearsed) -> bool:
    """Whether a way out works, and leads to the objects that the step leads to if nothing dies."""
    last = len(rehearsal.steps) - 1
    if any(step.outcome != "ok" for step in rehearsal.steps[died.at + 2 :]):
        return False
    return not any(_differences(usual, died.at, rehearsal, last)) and not _fields(died, usual, rehearsal, last)


def _fields(died: _Step, usual: _Rehearsed, other: _Rehearsed, step: int) -> tuple[tuple[Ref, str], ...]:
    """Fields that are left over after a step, compared with a rehearsal in which nothing died."""
    written = (one for one in died.plan.case.all_resources() if one.ref.kind not in RUNS_ONCE)
    return tuple(fields_left(usual.contents[died.at], other.contents[step], written))


def _differences(
    usual: _Rehearsed, step: int, other: _Rehearsed, other_step: int
) -> tuple[tuple[Ref, ...], tuple[Ref, ...]]:
    """What is missing and what is left over after a step, compared with a rehearsal in which nothing died."""
    expected, found = _live(usual, step), _live(other, other_step)
    lost, left = sorted(expected - found), sorted(found - expected)
    for ref in list(lost):
        same = next((one for one in left if _without_suffix(one) == _without_suffix(ref)), None)
        if same is not None:  # Another name was generated for it.
            lost.remove(ref)
            left.remove(same)
    return tuple(lost), tuple(left)


def _without_suffix(ref: Ref) -> tuple[str, str, str]:
    return ref.kind, ref.namespace, GENERATED.sub("-", ref.name)


def _live(rehearsal: _Rehearsed, last: int) -> set[Ref]:
    """The objects of engines and users that the steps created and did not delete."""
    live: set[Ref] = set()
    for step in rehearsal.steps[: last + 1]:
        live |= {ref for ref in step.created if ref.kind not in RUNS_ONCE}
        live -= set(step.deleted)
    return live
