"""What Helm requests with --wait, from what it requested without, against what it does request."""

from __future__ import annotations

from pathlib import Path

import pytest

from seatrial.model.options import CheckOptions
from seatrial.model.resource import Body
from seatrial.model.timeline import SCHEDULES, Event, Schedule
from seatrial.plan.plan import Plan
from seatrial.plan.plans import plans
from seatrial.play.heard import Heard
from seatrial.play.rehearse import rehearse
from seatrial.play.with_wait import add_waits, without_wait

CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: NAME}\n"
INSTALLED_ONLY = "{{ if .Release.IsInstall }}\n" + CONFIG + "{{ end }}\n"
CRD = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boats.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: boats, singular: boat, kind: Boat, listKind: BoatList}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
"""
JOB = """\
apiVersion: batch/v1
kind: Job
metadata:
  name: NAME
  annotations: {helm.sh/hook: "NAME-install,NAME-upgrade", helm.sh/hook-delete-policy: POLICY}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: app, image: "registry.example/app:1"}]}}}
"""
DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: app}
spec:
  selector: {matchLabels: {app: app}}
  template:
    metadata: {labels: {app: app}}
    spec: {serviceAccountName: ACCOUNT, containers: [{name: app, image: "registry.example/app:1"}]}
"""
HOOKS = {
    "templates/pre.yaml": JOB.replace("NAME", "pre").replace("POLICY", "before-hook-creation"),
    "templates/post.yaml": JOB.replace("NAME", "post").replace("POLICY", "hook-succeeded"),
}
CHARTS = {
    "a deployment": {"templates/app.yaml": DEPLOYMENT.replace("ACCOUNT", "default")},
    "a paused deployment": {
        "templates/app.yaml": DEPLOYMENT.replace("ACCOUNT", "default").replace("spec:\n", "spec:\n  paused: true\n", 1)
    },
    "hooks": {**HOOKS, "templates/config.yaml": CONFIG.replace("NAME", "config")},
    "an object that an upgrade removes": {
        **HOOKS,
        "templates/config.yaml": CONFIG.replace("NAME", "config"),
        "templates/first.yaml": INSTALLED_ONLY.replace("NAME", "first"),
    },
    "crds": {"crds/boats.yaml": CRD, "templates/app.yaml": DEPLOYMENT.replace("ACCOUNT", "default")},
}


@pytest.mark.parametrize("name", CHARTS)
def test_helm_does_with_wait_what_was_expected_of_it(tmp_path: Path, name: str) -> None:
    base, waiting = _cases(tmp_path, CHARTS[name])
    derived, real = _derived(base, waiting), Heard()
    assert len(derived.acts) == 2
    for schedule in SCHEDULES:
        assert _told(waiting, schedule, derived) == _told(waiting, schedule, real), schedule
    assert all(len(acts) == 1 for acts in derived.acts.values()), "Helm ran, although its requests were known"


def test_helm_runs_where_a_wait_does_not_end(tmp_path: Path) -> None:
    """The Deployment needs a ServiceAccount that is not there."""
    base, waiting = _cases(tmp_path, {"templates/app.yaml": DEPLOYMENT.replace("ACCOUNT", "missing")}, absent=True)
    derived = _derived(base, waiting)
    rehearsal = rehearse(waiting, "ordinary", heard=derived)
    assert [step.outcome for step in rehearsal.steps] == ["hung", "hung"]
    assert derived.acts[0, "install", "app", "default", 0][-1].ended.outcome == "hung"


def test_a_resource_that_becomes_a_hook_is_left_to_helm(tmp_path: Path) -> None:
    flips = JOB.replace("NAME", "pre").replace("POLICY", "before-hook-creation")
    flips = flips.replace("  annotations", "{{ if .Release.IsUpgrade }}\n  annotations").replace(
        "\nspec", "\n{{ end }}\nspec"
    )
    base, waiting = _plans(tmp_path, {"templates/job.yaml": flips, "templates/c.yaml": CONFIG.replace("NAME", "c")})
    assert without_wait(waiting, [base]) is None


def _cases(folder: Path, files: dict[str, str], *, absent: bool = False) -> tuple[Plan, Plan]:
    base, waiting = _plans(folder, files, absent=absent)
    assert without_wait(waiting, [base]) == 0
    assert without_wait(base, [waiting]) is None
    return base, waiting


def _plans(folder: Path, files: dict[str, str], *, absent: bool = False) -> tuple[Plan, Plan]:
    """The plan of the default case of a chart, and that with --wait."""
    for path, text in {"Chart.yaml": "apiVersion: v2\nname: app\nversion: 1.0.0\n", **files}.items():
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text(text)
    missing = ("ServiceAccount/default/missing",) if absent else ()
    base, waiting = plans(CheckOptions(inputs=(str(folder),), absent=missing))
    return base, waiting


def _derived(base: Plan, waiting: Plan) -> Heard:
    plain, derived = Heard(), Heard()
    rehearse(base, "ordinary", heard=plain)
    add_waits(derived, waiting, plain)
    return derived


def _told(plan: Plan, schedule: Schedule, heard: Heard) -> list[tuple[object, ...]]:
    rehearsal = rehearse(plan, schedule, heard=heard)
    events = [_of_event(event) for event in rehearsal.timeline]
    return [*events, *((step.outcome, step.created, step.deleted, step.missing) for step in rehearsal.steps)]


def _of_event(event: Event) -> tuple[object, ...]:
    bodies = (_timeless(event.before), _timeless(event.after))
    return event.index, event.step, event.actor, event.verb, event.object, event.effect, event.message, bodies


def _timeless(body: Body | None) -> Body | None:
    """Helm's records hold the time."""
    if body is None or body.get("type") != "helm.sh/release.v1":
        return body
    return {"metadata": body["metadata"]["name"]}
