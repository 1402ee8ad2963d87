"""Real helm binaries, 3 and 4, against the embedded API: their actions, errors and waits.

`SEATRIAL_HELM3` and `SEATRIAL_HELM4` are their paths; a `helm` in PATH is used too.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from seatrial.check import run
from seatrial.helm.binary import find
from seatrial.model.options import CheckOptions
from seatrial.model.timeline import Rehearsal, Schedule
from seatrial.sandbox.client import Binary

CHART = "apiVersion: v2\nname: demo\nversion: 0.1.0\n"
CONFIG = """
apiVersion: v1
kind: ConfigMap
metadata: {name: app}
data: {color: "{{ .Values.color }}", revision: "{{ .Release.Revision }}"}
"""
WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: web, envFrom: [{configMapRef: {name: NAME}}]}]}
"""
MIGRATION = """
apiVersion: batch/v1
kind: Job
metadata:
  name: migrate
  annotations: {helm.sh/hook: "pre-install,pre-upgrade"}
spec:
  template:
    spec: {serviceAccountName: migrator, restartPolicy: Never, containers: [{name: main, image: migrate}]}
"""
ACCOUNT = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: migrator}\n"
BEFORE_DELETION = "helm.sh/hook: pre-delete, helm.sh/hook-weight: '-1', helm.sh/hook-delete-policy: hook-succeeded"
HOOK_WITHOUT_DELETION = """
apiVersion: v1
kind: ConfigMap
metadata:
  name: marks
  annotations: {helm.sh/hook: "pre-install,pre-upgrade", helm.sh/hook-delete-policy: never}
"""


def binaries() -> Iterator[Binary]:
    named = [os.environ.get("SEATRIAL_HELM3"), os.environ.get("SEATRIAL_HELM4"), shutil.which("helm")]
    yield from dict.fromkeys(find(path) for path in named if path)


@pytest.fixture(
    params=[pytest.param(binary, id=f"helm-{binary.version}") for binary in binaries()]
    or [pytest.param(None, id="none")]
)
def helm(request: pytest.FixtureRequest) -> Binary:
    if request.param is None:
        pytest.skip("no helm binary: neither SEATRIAL_HELM3 nor SEATRIAL_HELM4 names one, and no helm is on the PATH")
    assert isinstance(request.param, Binary)
    return request.param


def played(helm: Binary | None, folder: Path, schedule: Schedule = "eager", trial: str = "", **files: str) -> Rehearsal:
    """A chart, or a trial of it, rehearsed once."""
    (folder / "chart/templates").mkdir(parents=True, exist_ok=True)
    (folder / "chart/Chart.yaml").write_text(CHART)
    (folder / "chart/values.yaml").write_text("color: red\n")
    for name, text in files.items():
        (folder / f"chart/templates/{name}.yaml").write_text(text)
    (folder / "trial.yaml").write_text(trial)
    options = CheckOptions(inputs=(str(folder / ("trial.yaml" if trial else "chart")),))
    return run(replace(options, helm_binary=helm.path if helm else ""), schedule).rehearsal


def ends(rehearsal: Rehearsal) -> list[str]:
    return [f"{step.action} {step.outcome}" for step in rehearsal.steps]


def test_every_action_is_recorded_with_the_version_of_the_binary(helm: Binary, tmp_path: Path) -> None:
    steps = ["install: chart", "upgrade: chart\n    set: [color=blue]", "rollback: 1", "test: {}", "uninstall: {}"]
    trial = "steps:\n" + "".join(f"  - {step}\n" for step in steps)
    rehearsal = played(helm, tmp_path, trial=trial, config=CONFIG)
    assert str(rehearsal.engine) == f"helm@{helm.version} (real)"
    assert ends(rehearsal) == ["install ok", "upgrade ok", "rollback ok", "test ok", "uninstall ok"]
    colors = [event.after["data"] for event in rehearsal.timeline if event.object.name == "app" and event.after]
    assert [data["color"] for data in colors] == ["red", "blue", "red"]


@pytest.mark.parametrize("schedule", ["eager", "lazy"])
def test_a_wait_is_detected_by_watch_or_by_polling(helm: Binary, tmp_path: Path, schedule: Schedule) -> None:
    trial = "steps:\n  - install: chart\n    flags: [--wait]\n"
    rehearsal = played(helm, tmp_path, schedule, trial, config=CONFIG, web=WEB.replace("NAME", "app"))
    assert ends(rehearsal) == ["install ok"]


@pytest.mark.parametrize("schedule", ["eager", "lazy"])
def test_a_wait_that_cannot_end_is_cancelled_and_the_release_fails(
    helm: Binary, tmp_path: Path, schedule: Schedule
) -> None:
    trial = "steps:\n  - install: chart\n  - upgrade: chart\n"
    rehearsal = played(helm, tmp_path, schedule, trial, job=MIGRATION, account=ACCOUNT)
    assert ends(rehearsal) == ["install hung", "upgrade hung"]
    assert [str(ref) for ref in rehearsal.steps[0].waits_for] == ["Job/default/migrate"]


def test_polling_a_deployment_forever_is_a_hang(helm: Binary, tmp_path: Path) -> None:
    trial = "steps:\n  - install: chart\n    flags: [--wait, --timeout=90s]\n"
    stuck = WEB.replace("NAME", "app").replace(
        "image: web", "image: web, env: [{name: A, valueFrom: {configMapKeyRef: {name: app, key: missing}}}]"
    )
    rehearsal = played(helm, tmp_path, "lazy", trial, config=CONFIG, web=stuck)
    assert ends(rehearsal) == ["install hung"]
    assert rehearsal.steps[0].error.endswith("Helm times out after 90s (--timeout)")


def test_helm_3_refuses_existing_objects_and_helm_4_adopts_them(helm: Binary, tmp_path: Path) -> None:
    rehearsal = played(helm, tmp_path, marks=HOOK_WITHOUT_DELETION, config=CONFIG)
    ended = rehearsal.steps[1]
    if helm.major == 3:
        assert ended.error == (
            "UPGRADE FAILED: pre-upgrade hooks failed: warning: Hook pre-upgrade demo/templates/marks.yaml failed: "
            '1 error occurred:\n\t* configmaps "marks" already exists'
        )
    else:
        assert ended.outcome == "ok"


def test_hooks_go_when_one_times_out_in_an_uninstall(helm: Binary, tmp_path: Path) -> None:
    account = ACCOUNT.replace("migrator}", f"migrator, annotations: {{{BEFORE_DELETION}}}}}")
    job = MIGRATION.replace('helm.sh/hook: "pre-install,pre-upgrade"', "helm.sh/hook: pre-delete")
    job = job.replace("image: migrate", "image: migrate, envFrom: [{configMapRef: {name: none}}]")
    trial = "steps:\n  - install: chart\n  - delete: ConfigMap/default/none\n  - uninstall: {}\n"
    rehearsal = played(helm, tmp_path, "eager", trial, account=account, job=job)
    assert ends(rehearsal)[-1] == "uninstall hung"
    assert [str(ref) for ref in rehearsal.steps[-1].created] == ["Job/default/migrate"]
