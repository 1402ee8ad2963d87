"""Pulumi as a script: Pulumi 3.259 with pulumi-kubernetes 4.32, whose version it goes by; or a Pulumi of the user.

Of a preview only that is played which makes an `up` fail before it begins: charts that cannot be rendered, and the end
of what is protected. Cut from the model: `--continue-on-error`, `--target`, and providers that apply client-side.
"""

from __future__ import annotations

from seatrial.engines.act import Up
from seatrial.engines.engine import Engine, PlannedStep, Scene, round_trip
from seatrial.engines.pulumi.deploying import destroy, up
from seatrial.engines.pulumi.process import NAME, failure_of, run
from seatrial.engines.pulumi.recovery import ways_out
from seatrial.engines.pulumi.refreshing import IMPORTS, refresh
from seatrial.engines.pulumi.stacks import Stacks
from seatrial.engines.pulumi.stage import VERSIONS, configure, stage
from seatrial.engines.script import Script
from seatrial.model.engine import Action
from seatrial.model.program import acted_on


def _script(planned: PlannedStep[Up], scene: Scene) -> Script:
    stack = scene.memory.of(planned.name)
    match planned.step.action:
        case "destroy":
            return destroy(stack)
        case "refresh":
            return refresh(stack, imports=IMPORTS in planned.step.flags)
    return up(acted_on(planned.act.program, scene.acts_on), stack)


ENGINE = Engine(
    name=NAME,
    label="Pulumi",
    example="./infra",
    old_example="git:HEAD~1",
    versions=VERSIONS,
    actions=(
        Action("up", "replace", "pulumi up"),
        Action("refresh", "other", "pulumi refresh", takes="optional source"),
        Action("destroy", "remove", "pulumi destroy", takes="optional source"),
    ),
    default_trial=round_trip("up", "destroy"),
    configure=configure,
    stage=stage,
    run=run,
    read_error=failure_of,
    names_manifests=True,
    script=_script,
    memory=Stacks,
    keeps_state=True,
    ways_out=ways_out,
    explicit=True,
)
