"""Operations of Argo CD on the embedded cluster: how they end, and what they leave on record."""

from __future__ import annotations

from msgspec.structs import replace

from seatrial.cluster.cluster import Cluster
from seatrial.engines import Ended
from seatrial.engines.argocd.app import App, Settings
from seatrial.engines.argocd.fleet import Applications, ArgocdMemory, sync_fleet
from seatrial.engines.script import DescribedObject, play
from seatrial.model.resource import Body, Ref, ref_of
from seatrial.play.in_process import InProcess
from seatrial.readiness.argocd.verdict import HealthScript

HOOK, WAVE, POLICY = (f"argocd.argoproj.io/{word}" for word in ("hook", "sync-wave", "hook-delete-policy"))
NO_NAMESPACE: Body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "lost", "namespace": "nowhere"}}
FAILS = {"ConfigMap": HealthScript("return {status = obj.data.health}")}


def test_a_failed_apply_waits_for_its_siblings_since_3_4() -> None:
    sick = _config("sick", health="Progressing")
    bodies = [sick, NO_NAMESPACE, _config("later", {WAVE: "1"})]
    new = _synced(bodies, Settings((3, 4), FAILS))
    assert (new.outcome, new.operations[0].phase) == ("hung", "Running")
    assert new.operations[0].message == "waiting for healthy state of /ConfigMap/sick"
    old = _synced(bodies, Settings((3, 3), FAILS))
    assert (old.outcome, old.error.split(" (")[0]) == (
        "failed",
        'one or more objects failed to apply, reason: namespaces "nowhere" not found',
    )


def test_a_degraded_object_fails_the_sync_before_the_next_wave() -> None:
    ended = _synced([_config("sick", health="Degraded"), _config("later", {WAVE: "1"})], Settings((3, 5), FAILS))
    operation = ended.operations[0]
    assert operation.message == "one or more synchronization tasks completed unsuccessfully"
    assert operation.never_ran() == (("Sync", 1),)
    assert operation.tasks[0].health == "Degraded"


def test_a_degraded_object_is_not_looked_at_while_another_is_progressing() -> None:
    bodies = [_config("a", health="Degraded"), _config("b", health="Progressing"), _config("c", {WAVE: "1"})]
    ended = _synced(bodies, Settings((3, 5), FAILS))
    assert ended.outcome == "hung"
    assert ended.operations[0].message == "waiting for healthy state of /ConfigMap/b"


def test_the_last_wave_is_not_awaited() -> None:
    ended = _synced([_config("sick", health="Degraded")], Settings((3, 5), FAILS))
    assert (ended.outcome, ended.operations[0].message) == ("ok", "successfully synced (all tasks run)")


def test_a_failing_sync_is_retried_up_to_its_limit_or_forever() -> None:
    words = 'one or more objects failed to apply, reason: namespaces "nowhere" not found'
    app = App("shop", "default", (_target(NO_NAMESPACE),), automated=True)
    for retries, reported in (
        (None, (6, "failed", f"{words} (retried 5 times).")),
        (0, (1, "failed", words)),
        (2, (3, "failed", f"{words} (retried 2 times).")),
    ):
        ended = _play(Cluster(), replace(app, retries=retries), Settings((3, 5)), ArgocdMemory())
        assert (ended.operations[0].attempts, ended.outcome, ended.operations[0].message) == reported
    endless = _play(Cluster(), replace(app, retries=-1), Settings((3, 5)), ArgocdMemory())
    assert (endless.outcome, endless.operations[0].phase) == ("hung", "Running")
    assert endless.operations[0].message == f"{words}. Retrying attempt #2"


def test_suspended_objects_and_hooks_are_awaited() -> None:
    for marks in ({}, {HOOK: "PreSync"}):
        bodies = [_config("paused", marks, health="Suspended"), _config("later", {WAVE: "1"})]
        assert _synced(bodies, Settings((3, 5), FAILS)).outcome == "hung"


def test_a_hook_without_health_ends_and_an_object_does_not() -> None:
    scripts = {"ConfigMap": HealthScript("if obj.metadata.name == 'x' then return nil end return {status = 'Healthy'}")}
    hook = _synced([_config("x", {HOOK: "PreSync"}), _config("y")], Settings((3, 5), scripts))
    plain = _synced([_config("x"), _config("y", {WAVE: "1"})], Settings((3, 5), scripts))
    assert (hook.outcome, plain.outcome) == ("ok", "hung")
    assert "its health check says nothing, which is not healthy" in plain.error


def test_sync_fail_hooks_run_after_a_failure_and_are_deleted_with_the_operation() -> None:
    bodies = [
        _config("sick", {HOOK: "PreSync", POLICY: "HookSucceeded"}, health="Degraded"),
        _config("well", {HOOK: "PreSync", POLICY: "HookFailed"}, health="Healthy"),
        _config("tell", {HOOK: "SyncFail"}, health="Healthy"),
    ]
    ended = _synced(bodies, Settings((3, 5), FAILS))
    operation = ended.operations[0]
    assert operation.phase == "Failed"
    assert {task.object.name: task.state for task in operation.tasks} == {
        "sick": "Failed",
        "well": "Succeeded",
        "tell": "Succeeded",
    }
    assert [ref.name for ref in operation.hooks_deleted] == ["well"]


def test_a_deployment_past_its_progress_deadline_fails_the_sync() -> None:
    container = {"name": "app", "image": "registry.example/app:1"}
    spec = {"serviceAccountName": "absent", "containers": [container]}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": spec}
    web: Body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "default"}}
    web["spec"] = {"selector": {"matchLabels": {"app": "web"}}, "template": template}
    ended = _synced([web, _config("later", {WAVE: "1"})], Settings((3, 5)))
    assert ended.outcome == "failed"
    assert ended.error.splitlines() == [
        "one or more synchronization tasks completed unsuccessfully",
        'Deployment/default/web: Deployment "web" exceeded its progress deadline',
    ]


def test_an_object_is_recorded_as_prune_skipped_without_automated_pruning() -> None:
    cluster, memory = Cluster(), ArgocdMemory()
    _play(cluster, App("shop", "default", (_target(_config("old")),), revision="1"), Settings((3, 5)), memory)
    ended = _play(cluster, App("shop", "default", (_target(_config("new")),), revision="2"), Settings((3, 5)), memory)
    tasks = [(task.object.name, task.status, task.message) for task in ended.operations[0].tasks]
    assert tasks == [
        ("new", "Synced", "configmap/new created"),
        ("old", "PruneSkipped", "ignored (requires pruning)"),
    ]


def test_an_object_tracked_by_another_application_is_not_changed() -> None:
    cluster, memory = Cluster(), ArgocdMemory()
    copied = _config("copy", {"argocd.argoproj.io/tracking-id": "shop:/ConfigMap:default/original"})
    _play(cluster, App("other", "default", (_target(copied),)), Settings((2, 14)), memory)
    app = App("shop", "default", (_target(_config("original")),), prune=True)
    ended = _play(cluster, app, Settings((3, 5)), memory)
    assert [task.object.name for task in ended.operations[0].tasks] == ["original"]


def test_a_repeated_object_is_a_warning_and_the_last_one_wins() -> None:
    ended = _synced([_config("twice", health="one"), _config("twice", health="two")], Settings((3, 5)))
    said = "RepeatedResourceWarning: Resource /ConfigMap/default/twice appeared 2 times among application resources."
    assert ended.warnings == (f"shop: {said}",)
    assert len(ended.operations[0].tasks) == 1


def test_pvcs_of_a_statefulset_are_not_pruned_for_their_shared_label() -> None:
    labels = {"app.kubernetes.io/instance": "shop"}
    asks = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    claim = {"metadata": {"name": "data"}, "spec": asks}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "db", "image": "db"}]}}
    spec = {
        "selector": {"matchLabels": labels},
        "template": template,
        "volumeClaimTemplates": [claim],
        "serviceName": "db",
    }
    db: Body = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db", "namespace": "default"}}
    app = App("shop", "default", (_target({**db, "spec": spec}),), prune=True)
    cluster, memory = Cluster(), ArgocdMemory()
    _play(cluster, app, Settings((2, 8)), memory)
    assert cluster.store.get(Ref("PersistentVolumeClaim", "default", "data-db-0")) is not None
    again = _play(cluster, app, Settings((2, 8)), memory)
    assert [task.object.name for task in again.operations[0].tasks] == ["db"]


def _synced(bodies: list[Body], settings: Settings) -> Ended:
    return _play(Cluster(), App("shop", "default", tuple(map(_target, bodies))), settings, ArgocdMemory())


def _play(cluster: Cluster, app: App, settings: Settings, memory: ArgocdMemory) -> Ended:
    return play(sync_fleet(Applications((app,)), settings, memory, started=0), InProcess(cluster, "argocd"))


def _target(body: Body) -> DescribedObject:
    return DescribedObject(ref_of(body), body)


def _config(name: str, annotations: dict[str, str] | None = None, health: str = "Healthy") -> Body:
    meta = {"name": name, "namespace": "default", "annotations": dict(annotations or {})}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"health": health}}
