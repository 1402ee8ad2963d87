"""kubectl as an engine: apply and delete, as scripts or by a kubectl of the user.

Also what people do by hand in the trials of other engines.
"""

from __future__ import annotations

from typing import Any

from seatrial.engines.engine import Engine, PlannedStep, Scene, round_trip
from seatrial.engines.kubectl.commands import NAME, VERSION, apply, delete
from seatrial.engines.kubectl.process import failure_of, run
from seatrial.engines.kubectl.stage import configure, stage
from seatrial.engines.script import Script
from seatrial.model.engine import Action


def _script(planned: PlannedStep[Any], scene: Scene) -> Script:
    script = apply if planned.step.action == "apply" else delete
    return script(planned.act.objects, planned.namespace, planned.step.flags)


ENGINE: Engine[Any] = Engine(
    name=NAME,
    label=NAME,
    versions=(VERSION,),
    actions=(
        Action("apply", "replace", "kubectl apply", shows=("--prune",)),
        Action("delete", "remove", "kubectl delete"),
    ),
    # Manifests are seldom deleted by their files, and have neither hooks nor kept objects.
    default_trial=round_trip("apply", "delete", removes_at_once=False),
    configure=configure,
    stage=stage,
    script=_script,
    run=run,
    read_error=failure_of,
    explicit=True,
)
