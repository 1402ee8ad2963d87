"""The steps of a trial for Helm's other major version: what was rendered stays, what is done with it differs.

Templates may ask the cluster, the revision or chance. What they rendered to is in Helm's own record of a step, and the
other version is given that. Where such a release fails before it is recorded, it is not known; the trial ends there.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from msgspec.structs import replace

from seatrial.engines.act import HelmAct
from seatrial.engines.engine import PlannedStep
from seatrial.engines.helm import sdk, v3
from seatrial.engines.helm.alike import alike
from seatrial.helm import records
from seatrial.helm import sdk as helmsdk
from seatrial.model.engine import EngineId
from seatrial.model.release import Resource
from seatrial.model.resource import Body, dig, name_of
from seatrial.model.timeline import Rehearsal
from seatrial.sandbox.client import Binary
from seatrial.sources.stored import recorded

Steps = tuple[PlannedStep[Any], ...]


def other_version(
    steps: Sequence[PlannedStep[Any]], rehearsal: Rehearsal, there: Sequence[Body]
) -> tuple[EngineId, Steps] | None:
    """Helm 4 itself where a binary of Helm 3 ran, else a simulated Helm 3; None without one, or if it does the same."""
    acts = [step.act for step in steps if isinstance(step.act, HelmAct)]
    if any(act.simulated for act in acts):
        return None
    if any(act.binary is not None and act.binary.major < sdk.MAJOR for act in acts):
        if helmsdk.missing:
            return None
        return EngineId(sdk.NAME, sdk.VERSION), with_client(steps)
    if alike(steps, rehearsal, there):
        return None
    known: list[PlannedStep[Any]] = []
    for index, step in enumerate(steps):
        if not isinstance(step.act, HelmAct) or not step.act.asks or step.release is None:
            known.append(step)
            continue
        body = _record(rehearsal, index)
        if body is None:
            break
        resources = _resources(name_of(body), str(dig(body, "data", "release")))
        known.append(replace(step, release=replace(step.release, resources=resources)))
    return EngineId(sdk.NAME, v3.VERSION), with_client(known, simulated=True)


def with_client(steps: Sequence[PlannedStep[Any]], binary: Binary | None = None, *, simulated: bool = False) -> Steps:
    """The same steps with another Helm: the SDK, a binary, or a simulated Helm 3."""
    return tuple(
        replace(step, act=replace(step.act, binary=binary, simulated=simulated, as_version=()))
        if isinstance(step.act, HelmAct)
        else step
        for step in steps
    )


@lru_cache(maxsize=8)
def _resources(name: str, data: str) -> tuple[Resource, ...]:
    """What a record of Helm says. The steps of all schedules have the same one, and it may be megabytes of YAML."""
    return recorded({"metadata": {"name": name}, "type": records.TYPE, "data": {"release": data}}).resources


def _record(rehearsal: Rehearsal, step: int) -> Body | None:
    """What Helm has recorded of the release of a step."""
    created = (event.after for event in rehearsal.of_step(step) if event.effect == "created" and event.after)
    return next((body for body in created if body.get("type") == records.TYPE), None)
