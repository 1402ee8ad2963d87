"""Argo CD as scripts: syncs of Applications with their phases, waves, hooks, health and prunes, and their deletion.

Models Argo CD 2.8 to 3.5 (`versions`), from the source of v3.5.1: gitops-engine/pkg/sync and controller/. `process`
runs an Argo CD of the user instead.
"""

from __future__ import annotations

from collections.abc import Iterable

from seatrial.engines import Ended
from seatrial.engines.act import Sync
from seatrial.engines.argocd.fleet import ArgocdMemory, delete_fleet, sync_fleet
from seatrial.engines.argocd.process import NAME, PROGRAMS, failure_of, run
from seatrial.engines.argocd.stage import VERSIONS, configure, stage
from seatrial.engines.engine import Engine, PlannedStep, Scene, round_trip
from seatrial.engines.script import Script
from seatrial.model.engine import Action
from seatrial.model.resource import Ref

FIRST_SYNC_SECONDS = 1_750_000_000
SYNC_SECONDS = 3_600
"""The assumed start times of syncs, which are part of generated hook names."""


def _script(planned: PlannedStep[Sync], scene: Scene) -> Script:
    act = planned.act
    if planned.step.action == "delete":
        return delete_fleet(act.fleet, act.settings, scene.memory)
    started = FIRST_SYNC_SECONDS + scene.index * SYNC_SECONDS
    return sync_fleet(act.fleet, act.settings, scene.memory, started=started, flags=planned.step.flags)


def _synced(planned: PlannedStep[Sync], ended: Ended) -> Iterable[Ref]:
    tasks = (task for operation in ended.operations for task in operation.tasks if not task.hook)
    return (task.object for task in tasks if task.status == "Synced")


def _command(planned: PlannedStep[Sync]) -> str:
    verb = "delete" if planned.step.action == "delete" else "sync"
    return f"argocd app {verb} {' '.join(app.name for app in planned.act.fleet.roots)}"


ENGINE = Engine(
    name=NAME,
    label="Argo CD",
    example="./app --engine argocd",
    old_example="./old-app",
    versions=VERSIONS,
    actions=(
        Action("sync", "replace", "the sync"),
        Action("delete", "remove", "deleting the Application"),
    ),
    default_trial=round_trip("sync", "delete"),
    configure=configure,
    stage=stage,
    run=run,
    read_error=failure_of,
    controllers=PROGRAMS,
    script=_script,
    expected=_synced,
    memory=lambda before: ArgocdMemory(),
    keeps_state=True,
    repeats=_command,
    names_manifests=True,
    has_cases=True,
    usual_for=(("argoproj.io", "Application"), ("argoproj.io", "ApplicationSet")),
    follows_charts=True,
)
