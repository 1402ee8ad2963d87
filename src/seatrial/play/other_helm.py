"""The plan of a trial for Helm's other major version: what was rendered stays, what is done with it differs.

Templates may ask the cluster, the revision or chance. What became of it is in Helm's own record of a step, and the
other version is given that. Where such a release fails before it is recorded, nobody knows; the plan ends there.
"""

from __future__ import annotations

from msgspec.structs import replace

from seatrial.engines.helm import sdk as helm
from seatrial.helm import records
from seatrial.model.resource import Body
from seatrial.model.timeline import Rehearsal
from seatrial.plan.plan import Plan
from seatrial.sources.stored import recorded


def other_version(plan: Plan, rehearsal: Rehearsal) -> Plan | None:
    """Helm 4 itself where a binary of Helm 3 has played, else the rules of Helm 3; None where nothing is to compare."""
    if rehearsal.engine.name != helm.NAME or plan.by_rules_of_helm_3:
        return None
    if plan.helm and plan.helm.major < helm.MAJOR:
        return replace(plan, helm=None)
    releases = list(plan.case.releases)
    for step, (played, release) in enumerate(zip(plan.steps, plan.case.releases, strict=True)):
        if not played.asks or release is None:
            continue
        body = _record(rehearsal, step)
        if body is None:
            releases = releases[:step]
            break
        releases[step] = replace(release, resources=recorded(body).resources)
    case = replace(plan.case, releases=tuple(releases))
    return replace(plan, steps=plan.steps[: len(releases)], case=case, helm=None, by_rules_of_helm_3=True)


def _record(rehearsal: Rehearsal, step: int) -> Body | None:
    """What Helm has written down of the release of a step."""
    created = (event.after for event in rehearsal.of_step(step) if event.effect == "created" and event.after)
    return next((body for body in created if body.get("type") == records.TYPE), None)
