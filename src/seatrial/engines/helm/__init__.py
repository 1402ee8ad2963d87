"""Helm as an engine: the real SDK, a helm binary, and a simulated Helm 3.

The real Helm runs over HTTP and is no script; `script` is the simulated one.
"""

from __future__ import annotations

from seatrial.engines import Api, Ended
from seatrial.engines.act import HelmAct
from seatrial.engines.engine import Before, Engine, PlannedStep, Scene
from seatrial.engines.helm import process, sdk, v3
from seatrial.engines.helm.errors import failure_of
from seatrial.engines.helm.other_version import other_version
from seatrial.engines.helm.recovery import ways_out
from seatrial.engines.helm.stage import configure, stage
from seatrial.engines.script import Script
from seatrial.helm import sdk as helmsdk
from seatrial.helm.binary import stand_in
from seatrial.helm.versions import NOT_IN_REVISION_IS_REFUSED
from seatrial.model.engine import Action
from seatrial.model.trial import Step


def _default_trial(source: str, old: str, revision: int) -> tuple[Step, ...]:
    upgrade, install, uninstall = Step("upgrade", source), Step("install", source), Step("uninstall")
    if revision:
        return (upgrade, upgrade, Step("rollback", revision=revision), uninstall, install)
    if not old:
        return (install, upgrade, uninstall)
    return (Step("install", old), upgrade, upgrade, Step("rollback", revision=1), uninstall, install)


def _shelf(before: Before) -> v3.Shelf:
    was = before.release
    return {(was.namespace, was.name, number): release for number, release in before.revisions} if was else {}


def _run(act: HelmAct, api: Api) -> Ended:
    binary = act.binary or (stand_in() if helmsdk.missing else None)
    return process.run(act, api, binary) if binary else sdk.run(act, api)


def _simulated(planned: PlannedStep[HelmAct], scene: Scene) -> Script:
    act = v3.Helm3Act(
        planned.step,
        planned.name,
        planned.namespace,
        scene.memory,
        planned.release,
        render=planned.act.render,
        looks_up=planned.act.looks_up,
        refuses_unrecorded=planned.act.as_version in NOT_IN_REVISION_IS_REFUSED,
    )
    return v3.play_act(act)


ENGINE = Engine(
    name=sdk.NAME,
    label="Helm",
    versions=(v3.VERSION, sdk.VERSION),
    actions=(
        Action("install", "install", "helm install", unordered=("apply", "create")),
        Action("upgrade", "replace", "helm upgrade"),
        Action("rollback", "back", "helm rollback", takes="revision"),
        Action("uninstall", "remove", "helm uninstall", takes="nothing", unordered=("delete",)),
        Action("test", "other", "helm test", takes="nothing"),
    ),
    default_trial=_default_trial,
    configure=configure,
    stage=stage,
    script=_simulated,
    run=_run,
    read_error=failure_of,
    expected=sdk.expected,
    memory=_shelf,
    other_version=other_version,
    has_cases=True,
    wait_flag="--wait",
    namespace_flag="--create-namespace",
    ways_out=ways_out,
)
