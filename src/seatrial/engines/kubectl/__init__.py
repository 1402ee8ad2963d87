"""kubectl as an engine: apply and delete, as scripts. Also what people do by hand in the trials of other engines."""

from __future__ import annotations

from seatrial.engines.act import Apply
from seatrial.engines.engine import Engine, PlannedStep, Scene, round_trip
from seatrial.engines.kubectl.commands import NAME, VERSION, apply, delete
from seatrial.engines.kubectl.stage import stage
from seatrial.engines.script import Script
from seatrial.model.engine import Action


def _script(planned: PlannedStep[Apply], scene: Scene) -> Script:
    run = apply if planned.step.action == "apply" else delete
    return run(planned.act.objects, planned.namespace, planned.step.flags)


ENGINE = Engine(
    name=NAME,
    label=NAME,
    versions=(VERSION,),
    actions=(
        Action("apply", "replace", "kubectl apply", shows=("--prune",)),
        Action("delete", "remove", "kubectl delete"),
    ),
    # Manifests are seldom deleted by their files, and have neither hooks nor kept objects.
    default_trial=round_trip("apply", "delete", removes_at_once=False),
    stage=stage,
    script=_script,
    explicit=True,
    killable=("apply", "delete"),
)
