"""Properties of every release: rehearsals are reproducible, and deletion leaves nothing."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from seatrial.engines.act import Apply, HelmAct, Manifest
from seatrial.engines.engine import PlannedStep
from seatrial.helm import sdk as helmsdk
from seatrial.model.engine import EngineId
from seatrial.model.release import Case
from seatrial.model.resource import Body, Ref
from seatrial.model.timeline import Rehearsal, Schedule
from seatrial.model.trial import Step
from seatrial.plan.plan import Plan
from seatrial.play.rehearse import rehearse

NAMES = ("a", "b", "c")
FEW = settings(max_examples=25, deadline=None, derandomize=True)


def plain(kind: str) -> st.SearchStrategy[Body]:
    return st.sampled_from(NAMES).map(lambda name: {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}})


@st.composite
def workload(draw: st.DrawFn) -> Body:
    """A Deployment or Job that mounts a ConfigMap and uses a ServiceAccount, either of which may be missing."""
    name, config = draw(st.sampled_from(NAMES)), draw(st.sampled_from(NAMES))
    pod: Body = {
        "containers": [{"name": "app", "image": "app:1"}],
        "volumes": [{"name": "config", "configMap": {"name": config}}],
    }
    if draw(st.booleans()):
        pod["serviceAccountName"] = draw(st.sampled_from(NAMES))
    template: Body = {"metadata": {"labels": {"app": name}}, "spec": pod}
    if draw(st.booleans()):
        job = {"template": {**template, "spec": {**pod, "restartPolicy": "Never"}}}
        return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": job}
    spec = {"replicas": draw(st.integers(0, 2)), "selector": {"matchLabels": {"app": name}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


def releases() -> st.SearchStrategy[list[Body]]:
    one = st.one_of(plain("ConfigMap"), plain("Secret"), plain("ServiceAccount"), workload())
    key = lambda body: (body["kind"], body["metadata"]["name"])  # noqa: E731
    return st.lists(one, min_size=1, max_size=6, unique_by=key)


def played(objects: list[Body], schedule: Schedule, seed: int = 0) -> Rehearsal:
    steps = tuple(
        PlannedStep(Step(action), "kubectl", "", "default", Apply(tuple(map(Manifest, objects))))
        for action in ("apply", "apply", "delete")
    )
    return rehearse(Plan(EngineId("kubectl", "1.34"), steps, Case("", (None, None, None))), schedule, seed=seed)


def lines(rehearsal: Rehearsal) -> list[str]:
    return [
        f"{e.index} {e.step} {e.actor} {e.verb} {e.object} {e.effect} {e.message} {e.cause}" for e in rehearsal.timeline
    ]


@FEW
@given(releases(), st.sampled_from(("eager", "lazy", "seeded")), st.integers(0, 5))
def test_a_rehearsal_is_reproducible(objects: list[Body], schedule: Schedule, seed: int) -> None:
    assert lines(played(objects, schedule, seed)) == lines(played(objects, schedule, seed))


@FEW
@given(releases(), st.sampled_from(("eager", "lazy", "seeded")))
def test_apply_and_delete_leave_only_what_existed_before(objects: list[Body], schedule: Schedule) -> None:
    first, again, gone = played(objects, schedule).steps
    assert (first.outcome, again.outcome, gone.outcome) == ("ok", "ok", "ok")
    assert first.created == gone.deleted
    assert again.created == again.deleted == again.recreated == ()


@FEW
@given(releases(), st.integers(0, 20))
def test_every_schedule_has_the_same_final_phases(objects: list[Body], seed: int) -> None:
    """The final phases of a release's pods do not depend on the schedule."""
    lazy, seeded = (phases(played(objects, schedule, seed)) for schedule in ("lazy", "seeded"))
    assert lazy == seeded


@FEW
@given(releases())
def test_no_pod_runs_before_its_volumes_exist(objects: list[Body]) -> None:
    rehearsal = played(objects, "seeded", seed=1)
    there: set[Ref] = set()
    for event in rehearsal.timeline:
        if event.effect == "created":
            there.add(event.object)
        elif event.effect == "deleted":
            there.discard(event.object)
        body = event.after or {}
        if event.verb == "status" and event.object.kind == "Pod" and body["status"].get("phase") == "Running":
            mounted = [volume["configMap"]["name"] for volume in body["spec"]["volumes"] if "configMap" in volume]
            started = (event.before or {}).get("status", {}).get("phase") != "Running"
            assert not started or all(Ref("ConfigMap", "default", name) in there for name in mounted)


@settings(max_examples=8, deadline=None, derandomize=True)
@given(releases(), st.sampled_from(("eager", "lazy")))
def test_install_and_uninstall_leave_only_what_existed_before(objects: list[Body], schedule: Schedule) -> None:
    """Except hooks, which Helm leaves behind."""
    with TemporaryDirectory() as folder:
        (Path(folder) / "templates").mkdir()
        (Path(folder) / "Chart.yaml").write_text("apiVersion: v2\nname: demo\nversion: 0.1.0\n")
        (Path(folder) / "templates" / "all.yaml").write_text("\n---\n".join(map(json.dumps, objects)))
        acts = (
            HelmAct(action, "demo", "default", lambda: helmsdk.Chart.load(Path(folder)))
            for action in ("install", "uninstall", "install")
        )
        steps = tuple(PlannedStep(Step(act.action), "helm", "demo", "default", act) for act in acts)
        first, gone, again = rehearse(Plan(EngineId("helm"), steps, Case("", (None, None, None))), schedule).steps
    assert (first.outcome, gone.outcome, again.outcome) == ("ok", "ok", "ok")
    assert len(first.created) >= len(objects)
    assert first.created == gone.deleted == again.created
    assert gone.orphans == ()


def phases(rehearsal: Rehearsal) -> list[tuple[str, str]]:
    """The last phase of each workload's pods before their deletion, by the label of the workload."""
    last: dict[Ref, tuple[str, str]] = {}
    for event in rehearsal.timeline:
        if event.step < 2 and event.object.kind == "Pod" and event.after is not None:
            labels = event.after["metadata"].get("labels", {})
            last[event.object] = (labels.get("app", ""), event.after.get("status", {}).get("phase", ""))
        elif event.step < 2 and event.effect == "deleted":
            last.pop(event.object, None)
    return sorted(last.values())
