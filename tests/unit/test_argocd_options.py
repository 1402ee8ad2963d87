"""Sync options of Argo CD, of Applications and of objects: each as it shows in what is sent, and in what is said."""

from __future__ import annotations

import pytest
from argocdworld import World, config
from msgspec.structs import replace

from seatrial.engines.argocd.app import App, Settings
from seatrial.engines.script import Command
from seatrial.model.resource import Body, Ref, annotations_of, dig, labels_of

OPTIONS = "argocd.argoproj.io/sync-options"
COMPARE = "argocd.argoproj.io/compare-options"
NEWEST = Settings((3, 5))
OLD, NEW = Ref("ConfigMap", "default", "old"), Ref("ConfigMap", "default", "new")


def test_prune_false_keeps_an_object_and_as_an_application_option_since_3_4() -> None:
    assert _pruned({OPTIONS: "Prune=false"}) == (False, "ignored (no prune)")
    assert _pruned(options=("Prune=false",)) == (False, "ignored (no prune)")
    assert _pruned(options=("Prune=false",), settings=Settings((3, 3))) == (True, "pruned")
    assert _pruned({OPTIONS: "Prune=true"}, options=("Prune=false",)) == (True, "pruned")


def test_prune_confirm_waits_for_a_user_since_2_14() -> None:
    for version, words in (
        ((3, 5), "waiting for pruning confirmation of /ConfigMap/old"),
        ((2, 14), "Waiting for pruning confirmation of v1/ConfigMap/old"),
    ):
        world = World(Settings(version))
        world.sync(config("old", {OPTIONS: "Prune=confirm"}))
        ended = world.sync(config("new"))
        assert (ended.outcome, ended.operations[0].message) == ("hung", words)
        assert world.there(NEW) is None, "nothing of the wave is applied before"
    assert _pruned({OPTIONS: "Prune=confirm"}, settings=Settings((2, 13))) == (True, "pruned")


@pytest.mark.parametrize("on_object", [True, False])
def test_delete_false_keeps_an_object_on_deletion_but_not_on_prune(on_object: bool) -> None:
    marks, options = ({OPTIONS: "Delete=false"}, ()) if on_object else ({}, ("Delete=false",))
    world = World(options=options)
    world.sync(config("old", marks))
    world.delete(config("old", marks))
    assert world.there(OLD) is not None
    assert _pruned(marks, options=options) == (True, "pruned")


def test_delete_confirm_blocks_the_whole_deletion_since_2_14() -> None:
    bodies = config("old", {OPTIONS: "Delete=confirm"}), config("new")
    world = World()
    world.sync(*bodies)
    ended = world.delete(*bodies)
    assert ended.outcome == "hung"
    assert ended.error.startswith("Resource /ConfigMap/default/old requires manual confirmation to delete: ")
    assert world.there(NEW) is not None
    before = World(Settings((2, 13)))
    before.sync(*bodies)
    assert before.delete(*bodies).outcome == "ok"


@pytest.mark.parametrize("on_object", [True, False])
def test_replace_sends_the_whole_object(on_object: bool) -> None:
    marks, options = ({OPTIONS: "Replace=true"}, ()) if on_object else ({}, ("Replace=true",))
    world = World(options=options)
    world.sync(config("old", marks))
    world.user(Command("merge", "v1", "ConfigMap", "default", "old", {"data": {"by": "others"}}))
    ended = world.sync(config("old", marks))
    assert ended.operations[0].tasks[0].message == "configmap/old replaced"
    assert dig(world.there(OLD), "data") == {"key": "value"}


def test_options_of_the_live_object_count_since_3_3() -> None:
    for version, words in (((3, 3), "replaced"), ((3, 2), "configured")):
        world = World(Settings(version))
        world.sync(config("old", {OPTIONS: "Replace=true"}))
        assert world.sync(config("old", value="other")).operations[0].tasks[0].message == f"configmap/old {words}"


def test_force_recreates_immutable_objects_and_per_object_since_2_12() -> None:
    frozen = {"immutable": True}
    for version, outcome in (((2, 12), "ok"), ((2, 11), "failed")):
        world = World(Settings(version))
        world.sync({**config("old", {OPTIONS: "Force=true"}), **frozen})
        uid = dig(world.there(OLD), "metadata", "uid")
        ended = world.sync({**config("old", {OPTIONS: "Force=true"}, value="other"), **frozen})
        assert ended.outcome == outcome
        assert (dig(world.there(OLD), "metadata", "uid") != uid) == (outcome == "ok")


def test_force_with_replace_recreates_changed_objects() -> None:
    world = World()
    world.sync(config("old", {OPTIONS: "Force=true,Replace=true"}))
    uid = dig(world.there(OLD), "metadata", "uid")
    world.sync(config("old", {OPTIONS: "Force=true,Replace=true"}))
    assert dig(world.there(OLD), "metadata", "uid") != uid


def test_server_side_apply_can_be_set_and_unset_per_object() -> None:
    for marks, options, words in (
        ({}, ("ServerSideApply=true",), "serverside-applied"),
        ({OPTIONS: "ServerSideApply=true"}, (), "serverside-applied"),
        ({OPTIONS: "ServerSideApply=false"}, ("ServerSideApply=true",), "created"),
    ):
        ended = World(options=options).sync(config("old", marks))
        assert ended.operations[0].tasks[0].message == f"configmap/old {words}"
    forced = World().sync(config("old", {OPTIONS: "ServerSideApply=true,Force=true"}))
    assert "--force cannot be used with --server-side" in forced.error


@pytest.mark.parametrize(("version", "left"), [((2, 9), {"key": "value", "gone": "x"}), ((2, 10), {"key": "value"})])
def test_client_side_applied_fields_get_one_manager(version: tuple[int, int], left: Body) -> None:
    world = World(Settings(version))
    world.sync({**config("old"), "data": {"key": "value", "gone": "x"}})
    world.sync(config("old"), app=replace(world.app, options=("ServerSideApply=true",)))
    assert dig(world.there(OLD), "data") == left


@pytest.mark.parametrize(
    ("version", "options", "left"),
    [
        ((3, 0), (), {"key": "value", "gone": "x"}),
        ((3, 1), (), {"key": "value"}),
        ((3, 1), ("ClientSideApplyMigration=false",), {"key": "value", "gone": "x"}),
    ],
)
def test_kubectls_fields_are_migrated_since_3_1_unless_disabled(
    version: tuple[int, int], options: tuple[str, ...], left: Body
) -> None:
    world = World(Settings(version), options=("ServerSideApply=true", *options))
    made = {**config("old"), "data": {"key": "value", "gone": "x"}}
    world.user(Command("create", "v1", "ConfigMap", "default", "old", made, "kubectl-client-side-apply"))
    world.sync(config("old"))
    assert dig(world.there(OLD), "data") == left


def test_apply_out_of_sync_only_skips_objects_in_sync() -> None:
    world = World(options=("ApplyOutOfSyncOnly=true",))
    world.sync(config("old"), config("new"))
    ended = world.sync(config("old"), config("new", value="other"))
    assert {task.object.name: task.status for task in ended.operations[0].tasks} == {"old": "", "new": "Synced"}


@pytest.mark.parametrize("on_object", [True, False])
def test_prune_last_runs_after_all_waves_are_healthy(on_object: bool) -> None:
    marks, options = ({OPTIONS: "PruneLast=true"}, ()) if on_object else ({}, ("PruneLast=true",))
    world = World(options=options)
    world.sync(config("old", marks))
    ended = world.sync(config("new", {"argocd.argoproj.io/sync-wave": "3"}))
    assert [(task.object.name, task.wave) for task in ended.operations[0].tasks] == [("new", 3), ("old", 4)]


def test_the_propagation_policy_decides_about_dependents() -> None:
    owned = Ref("ReplicaSet", "default", "web", "apps")
    for policy, left in (("orphan", 1), ("background", 0), ("foreground", 0)):
        world = World(options=(f"PrunePropagationPolicy={policy}",))
        world.sync(_deployment())
        world.sync(config("new"))
        assert len(list(world.cluster.store.of_kind((owned.group, owned.kind)))) == left, policy


def test_a_shared_object_is_a_warning_or_with_fail_on_shared_resource_an_error() -> None:
    world = World()
    world.sync(config("old"))
    said = "ConfigMap/old is part of applications argocd/other and shop"
    failing = world.sync(config("old"), app=App("other", "default", options=("FailOnSharedResource=true",)))
    assert (failing.outcome, failing.error.partition(" (")[0]) == ("failed", f"Shared resource found: {said}")
    reported = world.sync(config("old"), app=App("other", "default"))
    assert (reported.outcome, reported.warnings) == ("ok", (f"other: SharedResourceWarning: {said}",))


def test_create_namespace_sets_managed_metadata_and_keeps_other_labels() -> None:
    managed = {"labels": {"team": "web"}, "annotations": {"note": "ours"}}
    app = App("shop", "made", options=("CreateNamespace=true",), namespace_metadata=managed)
    world, body = World(), config("old", namespace="made")
    world.sync(body, app=app)
    world.user(Command("merge", "v1", "Namespace", "", "made", {"metadata": {"labels": {"by": "others"}}}))
    world.sync(body, app=replace(app, namespace_metadata={"labels": {"team": "shop"}}))
    namespace = world.there(Ref("Namespace", "", "made"))
    assert namespace is not None
    assert {k: v for k, v in labels_of(namespace).items() if k in ("team", "by")} == {"team": "shop", "by": "others"}
    assert annotations_of(namespace) == {OPTIONS: "ServerSideApply=true"}
    assert world.delete(body, app=app).outcome == "ok"
    assert world.there(Ref("Namespace", "", "made")) is not None, "no Application tracks it"


def test_the_server_validates_whatever_the_option_says() -> None:
    for options in ((), ("Validate=false",)):
        body = {**config("old"), "nonsense": 1}
        assert World(options=options).sync(body).outcome == "ok"


def test_missing_kinds_can_be_skipped_for_a_whole_application_since_3_1() -> None:
    widget: Body = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "x", "namespace": "default"}}
    bodies = config("new", {"argocd.argoproj.io/sync-wave": "-1"}), widget
    for version, applied in (((3, 1), True), ((3, 0), False)):
        world = World(Settings(version), options=("SkipDryRunOnMissingResource=true",))
        assert world.sync(*bodies).outcome == "failed"
        assert (world.there(NEW) is not None) == applied


def test_ignored_fields_are_applied_unless_respect_ignore_differences_is_set() -> None:
    entry = {"group": "", "kind": "ConfigMap", "jsonPointers": ["/data/key"]}
    for options, value in (((), "value"), (("RespectIgnoreDifferences=true",), "others")):
        world = World(options=options, ignored=(entry,))
        world.sync(config("old"))
        world.user(Command("merge", "v1", "ConfigMap", "default", "old", {"data": {"key": "others"}}))
        world.sync(config("old"))
        assert dig(world.there(OLD), "data", "key") == value


def test_an_extraneous_object_starts_no_sync_but_the_next_one_prunes_it() -> None:
    for marks, extra in (({}, (OLD,)), ({COMPARE: "IgnoreExtraneous"}, ())):
        world = World()
        world.sync(config("old", marks))
        assert world.compared().extra == extra
        assert _pruned(marks) == (True, "pruned")


def _pruned(
    marks: dict[str, str] | None = None, options: tuple[str, ...] = (), settings: Settings = NEWEST
) -> tuple[bool, str]:
    """Whether an object with these marks goes when it is no longer wanted, and what is said of it."""
    world = World(settings, options)
    world.sync(config("old", marks))
    ended = world.sync(config("new"))
    said = next(task.message for task in ended.operations[0].tasks if task.object == OLD)
    return world.there(OLD) is None, said


def _deployment() -> Body:
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "app", "image": "web"}]}}
    spec = {"selector": {"matchLabels": labels}, "template": template}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": spec,
    }
