"""A real Helm client under both schedules: it is moved for what it waits for alone, and a hang is found as one."""

from __future__ import annotations

from pathlib import Path

import pytest

from seatrial import helmsdk
from seatrial.case import Case
from seatrial.rehearsal import Plan, Played, rehearse
from seatrial.timeline import Rehearsal, Schedule, StepResult
from seatrial.trial import Step

DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: main, image: "app:1"}]
      volumes: [{name: config, configMap: {name: CONFIG}}]
"""
CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: there}\n"
JOB_HOOK = """
apiVersion: batch/v1
kind: Job
metadata: {name: migrate, annotations: {helm.sh/hook: post-install}}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: "app:1"}]}}}
"""
SCHEDULES: tuple[Schedule, ...] = ("eager", "lazy")


def played(folder: Path, schedule: Schedule, *flags: str, **templates: str) -> Rehearsal:
    (folder / "templates").mkdir()
    (folder / "Chart.yaml").write_text("apiVersion: v2\nname: demo\nversion: 0.1.0\n")
    for name, text in templates.items():
        (folder / "templates" / f"{name}.yaml").write_text(text)
    step = Played(
        Step("install", flags=flags, settle=False), "demo", "default", chart=lambda: helmsdk.Chart.load(folder)
    )
    return rehearse(Plan((step,), Case("", (None,))), "helm", schedule)


def only(rehearsal: Rehearsal) -> StepResult:
    (step,) = rehearsal.steps
    return step


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("flag", ["--wait", "--wait=legacy"])
@pytest.mark.parametrize("timeout", ["5m", "10h"])
def test_a_wait_that_cannot_end_is_a_hang_whatever_the_timeout(
    tmp_path: Path, schedule: Schedule, flag: str, timeout: str
) -> None:
    web = DEPLOYMENT.replace("CONFIG", "missing")
    step = only(played(tmp_path, schedule, flag, f"--timeout={timeout}", web=web))
    assert step.outcome == "hung"
    assert [str(ref) for ref in step.waits_for] == ["Deployment/default/web"]
    assert "ConfigMap/default/missing" in [str(ref) for ref in step.lacking]
    assert step.error.startswith("waits for Deployment/default/web: ")
    assert 'configmap "missing" not found' in step.error


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("flag", ["--wait", "--wait=legacy"])
def test_a_wait_that_can_end_does(tmp_path: Path, schedule: Schedule, flag: str) -> None:
    web = DEPLOYMENT.replace("CONFIG", "there")
    assert only(played(tmp_path, schedule, flag, web=web, config=CONFIG)).outcome == "ok"


def test_lazy_moves_for_what_is_waited_for_and_nothing_else(tmp_path: Path) -> None:
    """Helm waits for its hook, a Job; nobody waits for the Deployment, which therefore makes no ReplicaSet."""
    web = DEPLOYMENT.replace("CONFIG", "there")
    rehearsal = played(tmp_path, "lazy", web=web, config=CONFIG, hook=JOB_HOOK)
    assert only(rehearsal).outcome == "ok"
    made = {event.object.kind for event in rehearsal.timeline if event.step == 0 and event.effect == "created"}
    assert {"Deployment", "Job", "Pod"} <= made
    assert "ReplicaSet" not in made


def test_eager_moves_everything_at_once(tmp_path: Path) -> None:
    web = DEPLOYMENT.replace("CONFIG", "there")
    rehearsal = played(tmp_path, "eager", web=web, config=CONFIG, hook=JOB_HOOK)
    assert "ReplicaSet" in {event.object.kind for event in rehearsal.timeline if event.effect == "created"}
