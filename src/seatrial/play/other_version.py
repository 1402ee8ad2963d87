"""The plan of a trial for the engine's other major version, to compare: what was rendered stays."""

from __future__ import annotations

from msgspec.structs import replace

from seatrial.engines.engine import load
from seatrial.model.timeline import Rehearsal
from seatrial.plan.plan import Plan
from seatrial.play.rehearse import rehearse


def other_version(plan: Plan, rehearsal: Rehearsal) -> Plan | None:
    """None where the engine has no other version, or where that certainly does the same."""
    engine = load(plan.engine.name)
    there = (*plan.found, *plan.assumed, *plan.deployed)
    found = engine.other_version(plan.steps, rehearsal, there) if engine.other_version else None
    if found is None:
        return None
    version, steps = found
    case = replace(plan.case, releases=tuple(step.release for step in steps))
    return replace(plan, engine=version, steps=steps, case=case)


def compared(rehearsal: Rehearsal, plan: Plan) -> Rehearsal:
    """A rehearsal with that of the engine's other major version, of which only the refusals are kept."""
    other_plan = None if plan.repairs else other_version(plan, rehearsal)
    if other_plan is None:
        return rehearsal
    other = rehearse(other_plan, rehearsal.schedule)
    refusals = tuple(event for event in other.timeline if event.effect == "refused")
    return replace(rehearsal, otherwise=replace(other, timeline=refusals))
