"""The real Helm under every schedule: controllers run only for what it waits for, and a hang is detected."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from seatrial.cluster import controllers
from seatrial.engines.act import HelmAct
from seatrial.engines.engine import PlannedStep
from seatrial.helm import sdk as helmsdk
from seatrial.model.engine import EngineId
from seatrial.model.release import Case
from seatrial.model.timeline import SCHEDULES, Rehearsal, Schedule, StepResult
from seatrial.model.trial import Step
from seatrial.plan.plan import Plan
from seatrial.play.over_http import DOUBT_SECONDS
from seatrial.play.rehearse import rehearse

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
DEFINITION = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Widget, plural: widgets}
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
"""
WIDGET = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: blue}\nspec: {size: SIZE}\n"


def installs(folder: Path, *flags: str, **templates: str) -> PlannedStep[HelmAct]:
    return step_of("install", folder, *flags, **templates)


def step_of(action: str, folder: Path, *flags: str, **templates: str) -> PlannedStep[HelmAct]:
    """A step with its own chart, after which the cluster does not settle."""
    (folder / "templates").mkdir(parents=True)
    (folder / "Chart.yaml").write_text("apiVersion: v2\nname: demo\nversion: 0.1.0\n")
    for name, text in templates.items():
        (folder / "templates" / f"{name}.yaml").write_text(text)
    step = Step(action, flags=flags, settle=False)
    act = HelmAct(action, "demo", "default", lambda: helmsdk.Chart.load(folder), flags=flags)
    return PlannedStep(step, "helm", "demo", "default", act)


def played(schedule: Schedule, *steps: PlannedStep[HelmAct]) -> Rehearsal:
    return rehearse(Plan(EngineId("helm"), steps, Case("", (None,) * len(steps))), schedule)


def seeded(step: PlannedStep[HelmAct], seed: int) -> Rehearsal:
    return rehearse(Plan(EngineId("helm"), (step,), Case("", (None,))), "seeded", seed=seed)


def only(rehearsal: Rehearsal) -> StepResult:
    (step,) = rehearsal.steps
    return step


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(("flag", "timeout"), [("--wait", "5m"), ("--wait=legacy", "5m"), ("--wait=legacy", "10h")])
def test_a_wait_that_cannot_end_is_a_hang_with_any_timeout(
    tmp_path: Path, schedule: Schedule, flag: str, timeout: str
) -> None:
    web = DEPLOYMENT.replace("CONFIG", "missing")
    step = only(played(schedule, installs(tmp_path, flag, f"--timeout={timeout}", web=web)))
    assert step.outcome == "hung"
    assert [str(ref) for ref in step.waits_for] == ["Deployment/default/web"]
    assert "ConfigMap/default/missing" in [str(ref) for ref in step.lacking]
    assert step.error.startswith("waits for Deployment/default/web: ")
    assert 'configmap "missing" not found' in step.error


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_wait_beyond_the_progress_deadline_fails_with_helms_error(tmp_path: Path, schedule: Schedule) -> None:
    """The deadline is ten minutes by default: longer than Helm's default timeout."""
    web = DEPLOYMENT.replace("CONFIG", "missing")
    step = only(played(schedule, installs(tmp_path, "--wait", "--timeout=10h", web=web)))
    words = "resource Deployment/default/web not ready. status: Failed, message: Progress deadline exceeded"
    assert (step.outcome, step.error) == ("failed", words)
    assert "ConfigMap/default/missing" in [str(ref) for ref in step.lacking]


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_hook_with_an_active_deadline_fails_before_the_timeout(tmp_path: Path, schedule: Schedule) -> None:
    mounts = "volumes: [{name: config, configMap: {name: missing}}]"
    hook = JOB_HOOK.replace(
        "spec: {template: {spec: {", f"spec: {{activeDeadlineSeconds: 60, template: {{spec: {{{mounts}, "
    )
    step = only(played(schedule, installs(tmp_path, hook=hook)))
    words = "resource Job/default/migrate not ready. status: Failed, message: Job Failed. failed: 1/1"
    assert (step.outcome, step.error) == ("failed", f"failed post-install: {words}")


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("flag", ["--wait", "--wait=legacy"])
def test_a_wait_that_can_end_ends(tmp_path: Path, schedule: Schedule, flag: str) -> None:
    web = DEPLOYMENT.replace("CONFIG", "there")
    assert only(played(schedule, installs(tmp_path, flag, web=web, config=CONFIG))).outcome == "ok"


@pytest.mark.parametrize("seed", range(4))
def test_a_seeded_schedule_works_with_a_real_client(tmp_path: Path, seed: int) -> None:
    """With any seed, what can become ready does while Helm waits, and what cannot is a hang."""
    web, config = DEPLOYMENT.replace("CONFIG", "there"), CONFIG
    plain = JOB_HOOK.replace("migrate, annotations: {helm.sh/hook: post-install}", "import")
    jobs = {"hook": JOB_HOOK, "plain": plain}
    fine = installs(tmp_path / "fine", "--wait", "--wait-for-jobs", web=web, config=config, **jobs)
    assert only(seeded(fine, seed)).outcome == "ok"
    stuck = only(seeded(installs(tmp_path / "stuck", "--wait", web=DEPLOYMENT.replace("CONFIG", "missing")), seed))
    assert stuck.outcome == "hung"
    assert "ConfigMap/default/missing" in [str(ref) for ref in stuck.lacking]


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_hang_of_ten_hours_costs_less_than_a_second_of_cpu(tmp_path: Path, schedule: Schedule) -> None:
    """Processor time, including Helm's: the load of the machine does not count."""
    played(schedule, installs(tmp_path / "first", config=CONFIG))  # Loads what is loaded only once.
    web = DEPLOYMENT.replace("CONFIG", "missing")
    began = time.process_time()
    assert (
        only(played(schedule, installs(tmp_path / "hung", "--wait=legacy", "--timeout=10h", web=web))).outcome == "hung"
    )
    assert time.process_time() - began < 1.0


def test_lazy_runs_controllers_only_for_what_is_waited_for(tmp_path: Path) -> None:
    """Helm waits for its hook Job. Nothing waits for the Deployment, so it creates no ReplicaSet."""
    web = DEPLOYMENT.replace("CONFIG", "there")
    rehearsal = played("lazy", installs(tmp_path, web=web, config=CONFIG, hook=JOB_HOOK))
    assert only(rehearsal).outcome == "ok"
    made = {event.object.kind for event in rehearsal.timeline if event.step == 0 and event.effect == "created"}
    assert {"Deployment", "Job", "Pod"} <= made
    assert "ReplicaSet" not in made


def test_a_wait_for_a_kind_that_is_no_longer_served_is_a_hang(tmp_path: Path) -> None:
    """The upgrade deletes the CRD, and its custom resources, before Helm waits for one of them."""
    first = installs(tmp_path / "1", definition=DEFINITION)
    second = step_of("upgrade", tmp_path / "2", definition=DEFINITION, widget=WIDGET.replace("SIZE", "1"))
    third = step_of("upgrade", tmp_path / "3", "--wait", widget=WIDGET.replace("SIZE", "2"))
    began = time.monotonic()
    rehearsal = played("eager", first, second, third)
    assert rehearsal.steps[2].outcome == "hung"
    assert rehearsal.steps[2].error.startswith("waits for Widget/default/blue, whose kind is no longer served")
    assert time.monotonic() - began < DOUBT_SECONDS


def test_a_cluster_that_never_settles_is_stopped_and_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit of controller runs is low here, so that a busy cluster looks like an endless loop."""
    assert only(played("eager", installs(tmp_path / "1", web=DEPLOYMENT))).warnings == ()
    monkeypatch.setattr(controllers, "RUNS_MAX", 5)
    step = only(played("eager", installs(tmp_path / "2", web=DEPLOYMENT)))
    words = "the cluster did not come to rest: its controllers were stopped after 5 moves"
    assert step.warnings == (words,)


def test_eager_runs_every_controller_at_once(tmp_path: Path) -> None:
    web = DEPLOYMENT.replace("CONFIG", "there")
    rehearsal = played("eager", installs(tmp_path, web=web, config=CONFIG, hook=JOB_HOOK))
    assert "ReplicaSet" in {event.object.kind for event in rehearsal.timeline if event.effect == "created"}


NAMESPACES = ("east", "north", "south", "west")
SEVERAL_KINDS = "\n---\n".join(
    text.replace("NAMESPACE", namespace)
    for namespace in NAMESPACES
    for text in (
        "apiVersion: v1\nkind: Namespace\nmetadata: {name: NAMESPACE}",
        DEPLOYMENT.replace("{name: web}", "{name: web, namespace: NAMESPACE}", 1).replace("CONFIG", "missing"),
        DEPLOYMENT.replace("{name: web}", "{name: db, namespace: NAMESPACE}", 1)
        .replace("kind: Deployment", "kind: StatefulSet")
        .replace("CONFIG", "missing"),
        "apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: NAMESPACE}\nspec: {ports: [{port: 80}]}",
    )
)


def test_a_wait_for_several_kinds_gives_the_same_timeline_every_time(tmp_path: Path) -> None:
    """Helm opens its watches at once, in any order, and is stopped when some of them may not be open yet."""
    runs = [played("lazy", installs(tmp_path / str(n), "--wait", several=SEVERAL_KINDS)) for n in range(4)]
    awaited = {(ref.kind, ref.namespace) for ref in only(runs[0]).waits_for}
    assert awaited == {(kind, namespace) for kind in ("Deployment", "StatefulSet") for namespace in NAMESPACES}
    shown = [[(e.actor, e.verb, e.object, e.effect, e.message, e.cause) for e in run.timeline] for run in runs]
    assert all(other == shown[0] for other in shown[1:])
