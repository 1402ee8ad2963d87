"""What each version of Argo CD does otherwise than the one before it, where no other test shows it.

Sync options are in test_argocd_options, rollouts in test_argocd_rollouts and in the story of a set that syncs step by
step, patterns of value files and exclusions in test_sources_argocd, siblings of a failed apply in
test_argocd_operations, lists of delete hooks in test_argocd_hooks, reasons of invalid tasks in the story of a project.
"""

from __future__ import annotations

import pytest
from argocdworld import World, config

from seatrial.engines.argocd.app import App, Settings
from seatrial.engines.argocd.declared import declared
from seatrial.engines.argocd.fleet import app_health
from seatrial.engines.script import Command, DescribedObject
from seatrial.model.resource import Body, Ref, annotations_of, labels_of, metadata, ref_of
from seatrial.readiness.argocd import health
from seatrial.readiness.argocd.verdict import HealthScript

HOOK, WAVE, POLICY = (f"argocd.argoproj.io/{word}" for word in ("hook", "sync-wave", "hook-delete-policy"))
BY_VALUE = {"ConfigMap": HealthScript("return {status = obj.data.key}")}
OLD, NEW = Ref("ConfigMap", "default", "old"), Ref("ConfigMap", "default", "new")


@pytest.mark.parametrize(("version", "runs"), [((2, 9), False), ((2, 10), True)])
def test_post_delete_hooks_run_since_2_10(version: tuple[int, int], runs: bool) -> None:
    world, bodies = World(Settings(version)), (config("old"), config("new", {HOOK: "PostDelete"}))
    world.sync(*bodies)
    world.delete(*bodies)
    assert (world.there(NEW) is not None) == runs


@pytest.mark.parametrize(("version", "runs"), [((3, 2), False), ((3, 3), True)])
def test_pre_delete_hooks_run_since_3_3(version: tuple[int, int], runs: bool) -> None:
    world, bodies = World(Settings(version)), (config("old"), config("new", {"helm.sh/hook": "pre-delete"}))
    world.sync(*bodies)
    world.delete(*bodies)
    assert any(event.object == NEW and event.effect == "created" for event in world.cluster.timeline()) == runs


@pytest.mark.parametrize(("version", "outcome"), [((3, 2), "ok"), ((3, 3), "failed")])
def test_a_failed_pre_delete_hook_blocks_the_deletion_since_3_3(version: tuple[int, int], outcome: str) -> None:
    hook = config("new", {HOOK: "PostDelete"}, value="Degraded")
    world = World(Settings(version, BY_VALUE))
    world.sync(hook)
    ended = world.delete(hook)
    assert (ended.outcome, ended.error) == (
        outcome,
        "PostDelete hook(s) failed: default/new" if outcome != "ok" else "",
    )


@pytest.mark.parametrize(("version", "by"), [((2, 14), "label"), ((3, 0), "annotation")])
def test_objects_are_tracked_by_annotations_since_3_0(version: tuple[int, int], by: str) -> None:
    world = World(Settings(version))
    world.sync(config("old"))
    body = world.there(OLD)
    assert body is not None
    label, annotation = labels_of(body), annotations_of(body).get("argocd.argoproj.io/tracking-id")
    expected = ({"app.kubernetes.io/instance": "shop"}, None) if by == "label" else ({}, "shop:/ConfigMap:default/old")
    assert (label, annotation) == expected


@pytest.mark.parametrize(("version", "kept"), [((2, 14), False), ((3, 0), True)])
def test_hooks_have_a_finalizer_while_they_run_since_3_0(version: tuple[int, int], kept: bool) -> None:
    world = World(Settings(version, BY_VALUE))
    world.sync(config("old", {HOOK: "PreSync"}, value="Progressing"))
    held = metadata(world.there(OLD) or {}).get("finalizers")
    assert held == (["argocd.argoproj.io/hook-finalizer"] if kept else None)


@pytest.mark.parametrize(("version", "outcome"), [((3, 1), "hung"), ((3, 2), "ok")])
def test_leftover_hook_finalizers_are_removed_since_3_2(version: tuple[int, int], outcome: str) -> None:
    world, hook = World(Settings(version)), config("old", {HOOK: "PreSync"})
    left = {**hook, "metadata": {**metadata(hook), "finalizers": ["argocd.argoproj.io/hook-finalizer"]}}
    world.user(Command("create", "v1", "ConfigMap", "default", "old", left))
    assert world.sync(hook).outcome == outcome


@pytest.mark.parametrize(("version", "first"), [((3, 0), False), ((3, 1), True)])
def test_the_namespace_is_created_before_the_dry_run_since_3_1(version: tuple[int, int], first: bool) -> None:
    nameless: Body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "x-", "namespace": "made"}}
    world, app = World(Settings(version)), App("shop", "made", options=("CreateNamespace=true",))
    ended = world.sync(nameless, app=app)
    assert ended.operations[0].message == "one or more objects failed to apply (dry run)"
    assert (world.there(Ref("Namespace", "", "made")) is not None) == first


@pytest.mark.parametrize(("version", "outcome"), [((3, 3), "hung"), ((3, 4), "failed")])
def test_an_awaited_object_that_is_deleted_is_an_error_since_3_4(version: tuple[int, int], outcome: str) -> None:
    """The first wave makes a Job that goes as soon as it has finished."""
    spec = {"containers": [{"name": "job", "image": "job"}], "restartPolicy": "Never"}
    job: Body = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "a", "namespace": "default"}}
    job["spec"] = {"ttlSecondsAfterFinished": 0, "template": {"spec": spec}}
    ended = World(Settings(version)).sync(job, config("new", {WAVE: "1"}))
    if outcome == "failed":
        assert "Resource batch/Job/a is missing, it might have been deleted" in ended.error
    assert ended.outcome == outcome


@pytest.mark.parametrize(
    ("version", "words"),
    [
        ((3, 3), "waiting for healthy state of /ConfigMap/a and 1 more resources"),
        ((3, 4), "waiting for completion of hook /ConfigMap/b and 1 more resources"),
    ],
)
def test_hooks_are_named_first_since_3_4(version: tuple[int, int], words: str) -> None:
    bodies = config("a", value="Progressing"), config("b", {HOOK: "Sync"}, value="Progressing")
    ended = World(Settings(version, BY_VALUE)).sync(*bodies, config("c", {WAVE: "1"}))
    assert ended.operations[0].message == words


@pytest.mark.parametrize(("version", "verdict"), [((2, 13), "Degraded"), ((2, 14), "Healthy")])
def test_ignore_healthcheck_excludes_an_object_since_2_14(version: tuple[int, int], verdict: str) -> None:
    marks = {"argocd.argoproj.io/ignore-healthcheck": "true"}
    world = World(Settings(version, BY_VALUE))
    body = config("old", marks, value="Degraded")
    world.sync(body)
    assert world.asked(app_health(_with(body), world.settings)) == verdict


@pytest.mark.parametrize(("version", "verdict"), [((3, 3), "Missing"), ((3, 4), "Healthy")])
def test_an_application_is_missing_only_if_all_objects_are_since_3_4(version: tuple[int, int], verdict: str) -> None:
    world = World(Settings(version, BY_VALUE))
    here, gone = config("old", value="Healthy"), config("new", value="Healthy")
    world.sync(here)
    assert world.asked(app_health(_with(here, gone), world.settings)) == verdict
    assert world.asked(app_health(_with(gone), world.settings)) == "Missing"


@pytest.mark.parametrize(("version", "on"), [((3, 0), True), ((3, 1), False)])
def test_automated_sync_can_be_disabled_by_a_field_since_3_1(version: tuple[int, int], on: bool) -> None:
    spec = {"syncPolicy": {"automated": {"enabled": False, "prune": True}}}
    app = declared({"metadata": {"name": "web"}, "spec": spec}, None, version)
    assert (app.automated, app.prune) == (on, on)


@pytest.mark.parametrize(
    ("kind", "since", "status"),
    [
        ("policy/v1 PodDisruptionBudget", (2, 13), {}),
        ("apiextensions.k8s.io/v1 CustomResourceDefinition", (3, 0), {"conditions": []}),
        ("batch/v1 CronJob", (3, 2), {}),
    ],
)
def test_bundled_checks_come_with_a_version(kind: str, since: tuple[int, int], status: Body) -> None:
    api_version, _, name = kind.partition(" ")
    body: Body = {"apiVersion": api_version, "kind": name, "metadata": {"name": "x"}, "spec": {}, "status": status}
    major, minor = since
    before = (major, minor - 1) if minor else (2, 14)
    assert health(body, {}, before) is None
    assert health(body, {}, since) is not None


@pytest.mark.parametrize(("version", "status"), [((3, 4), "Healthy"), ((3, 5), "Degraded")])
def test_missing_metrics_degrade_autoscalers_since_3_5(version: tuple[int, int], status: str) -> None:
    conditions = [
        {"type": "AbleToScale", "status": "True", "reason": "SucceededGetScale"},
        {"type": "ScalingActive", "status": "False", "reason": "FailedGetExternalMetric"},
    ]
    body: Body = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "x"}}
    verdict = health({**body, "status": {"conditions": conditions}}, {}, version)
    assert verdict is not None
    assert verdict.status == status


def _with(*bodies: Body) -> App:
    return App("shop", "default", tuple(DescribedObject(ref_of(body), body) for body in bodies))
