"""Flux as scripts: Kustomizations applied in stages and HelmReleases by the real Helm, in the order of dependsOn.

Models Flux 2.9: kustomize-controller 1.9, helm-controller 1.6 (which embeds Helm 4) and the package fluxcd/pkg/ssa.
`process` runs a Flux of the user instead.
"""

from __future__ import annotations

from seatrial.engines.act import Reconcile
from seatrial.engines.engine import Engine, PlannedStep, Scene, round_trip
from seatrial.engines.flux.fleet import delete_fleet, sync_fleet
from seatrial.engines.flux.objects import FluxMemory
from seatrial.engines.flux.process import NAME, PROGRAMS, failure_of, run
from seatrial.engines.flux.stage import USUAL_FOR, VERSIONS, configure, stage
from seatrial.engines.script import Script
from seatrial.model.engine import Action


def _script(planned: PlannedStep[Reconcile], scene: Scene) -> Script:
    run = delete_fleet if planned.step.action == "delete" else sync_fleet
    return run(planned.act.fleet, scene.memory)


ENGINE = Engine(
    name=NAME,
    label="Flux",
    example="./clusters/prod",
    old_example="git:HEAD~1",
    versions=VERSIONS,
    actions=(
        Action("sync", "replace", "the sync"),
        Action("delete", "remove", "flux delete"),
    ),
    default_trial=round_trip("sync", "delete"),
    configure=configure,
    stage=stage,
    run=run,
    read_error=failure_of,
    controllers=PROGRAMS,
    names_manifests=True,
    script=_script,
    expected=lambda planned, ended: (),
    memory=lambda before: FluxMemory(),
    inside=("helm",),
    has_cases=True,
    usual_for=USUAL_FOR,
)
