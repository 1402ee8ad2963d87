"""The plan of a trial for the engine's other major version, to compare: what was rendered stays."""

from __future__ import annotations

from msgspec.structs import replace

from seatrial.engines.engine import load
from seatrial.model.timeline import Rehearsal
from seatrial.plan.plan import Plan


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
