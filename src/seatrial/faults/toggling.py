"""Trials with a toggled flag: what they show that the trial without it does not.

Each is rehearsed on an ordinary cluster; on a slow and on a fast one only if it must be known whether a finding happens
there as well. A flag that needs further values is no fault: a trial whose old revision cannot be installed with it, or
whose new objects are invalid, shows nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from seatrial.evidence.compare.engine_differences import ComparedRehearsal
from seatrial.model.engine import EngineId
from seatrial.model.finding import Finding, gravity, hazard
from seatrial.model.timeline import ORDINARY, SCHEDULES, Rehearsal
from seatrial.plan.plan import Plan
from seatrial.play.trials import Begun, PlayedPlan, played, rehearsed

INVALID = "object-is-invalid"
OTHERS = tuple(schedule for schedule in SCHEDULES if schedule != ORDINARY)

Judge = Callable[[list[ComparedRehearsal]], list[Finding]]
"""What rehearsals of one trial show."""


class Toggled(Struct, frozen=True):
    """A trial with a toggled flag, and what only it shows."""

    played: PlayedPlan
    seen: list[ComparedRehearsal]
    findings: list[Finding]


def toggle(
    planned: list[Plan],
    usual: Sequence[PlayedPlan],
    known: Sequence[Finding],
    judge: Judge,
    progress: Callable[[str], None],
    begun: Begun,
) -> Iterator[Toggled]:
    """Every usable trial of `planned`; `usual` are the rehearsals without a toggle, and `known` what they show."""
    reported = list(known)
    of_old: dict[tuple[EngineId, str], list[Finding] | None] = {}
    installed = [one.rehearsals[0] for one in usual]
    for one in played(planned, progress, {**_begun(planned, usual), **begun}, (ORDINARY,)):
        flag = one.plan.engine, one.plan.toggle
        if of_old.get(flag, ()) is None:
            continue
        seen = _seen(one.plan, one.rehearsals)
        found = judge(seen)
        upgrades = _changes_revision(one.plan)
        old = [finding for finding in found if upgrades and finding.step == 0]
        new = [finding for finding in found if finding not in old and not _is_known(finding, of_old.get(flag) or ())]
        usable = not any(_needs_values(finding, one.plan) for finding in new)
        if not usable or (upgrades and not _is_installed(one.rehearsals[0], installed)):
            of_old[flag] = None
            continue
        of_old.setdefault(flag, old)
        new = [finding for finding in new if not _is_known(finding, reported)]
        if any(finding.certainty == "will" and not finding.timeless for finding in new):
            more = [rehearsed(one.plan, schedule, one.heard, progress) for schedule in OTHERS]
            seen += _seen(one.plan, more)
            wanted = {hazard(finding) for finding in new}
            new = [finding for finding in judge(seen) if hazard(finding) in wanted]
        else:
            new = [replace(finding, hidden=OTHERS) for finding in new]
        reported += new
        yield Toggled(one, seen, new)


def toggle_notes(planned: Sequence[Plan], usable: Sequence[Toggled]) -> Iterator[str]:
    """Which flags were toggled, and which were not."""
    names = list(dict.fromkeys(one.played.plan.toggle for one in usable))
    tried = dict.fromkeys(plan.toggle for plan in planned)
    if names:
        why = "the change is about what it decides" if len(names) == 1 else "the change is about what they decide"
        yield f"also rehearsed with {', '.join(names)}: {why} (--no-toggles leaves this out)"
    if unusable := [name for name in tried if name not in names]:
        yield f"not toggled, because further values are needed with it: {', '.join(unusable)}"
    if left_out := dict.fromkeys(name for plan in planned for name in plan.not_toggled):
        yield f"not toggled, though the change is about it too (--matrix KEY=true,false): {', '.join(left_out)}"


def _begun(planned: Iterable[Plan], usual: Sequence[PlayedPlan]) -> Begun:
    """What Helm requested in the first step, of the trials that begin like a usual one."""
    firsts = [(one.plan.engine, one.plan.steps[0].act, one) for one in usual]
    return {
        (plan.engine, plan.case.name): one.heard
        for plan in planned
        for engine, act, one in firsts
        if engine == plan.engine and act == plan.steps[0].act
    }


def _seen(plan: Plan, rehearsals: Iterable[Rehearsal]) -> list[ComparedRehearsal]:
    return [ComparedRehearsal(rehearsal, plan.case) for rehearsal in rehearsals]


def _changes_revision(plan: Plan) -> bool:
    """Whether the first step installs the old revision."""
    return len({planned.step.source for planned in plan.steps}) > 1


def _is_installed(rehearsal: Rehearsal, usual: Sequence[Rehearsal]) -> bool:
    """Whether the old revision can be installed with the toggle, or fails as it does without."""
    first = rehearsal.steps[0]
    ended = first.source, first.outcome, first.error
    alike = ((one.steps[0].source, one.steps[0].outcome, one.steps[0].error) for one in usual if one.steps)
    return first.outcome == "ok" or ended in alike


def _needs_values(finding: Finding, plan: Plan) -> bool:
    """Whether an object is invalid that the old revision does not have: its values may be missing."""
    return finding.rule == INVALID and plan.toggled_before.isdisjoint(finding.objects)


def _is_known(finding: Finding, reported: Iterable[Finding]) -> bool:
    """Whether a finding of the same rule is about the main object of this one, or this one of its, and as grave."""
    return any(
        other.rule == finding.rule
        and gravity(other) <= gravity(finding)
        and (
            other.objects[:1] == ()
            or other.objects[0] in finding.objects
            or finding.objects[:1] == ()
            or finding.objects[0] in other.objects
        )
        for other in reported
    )
