"""Options of resources, and `refresh`: what they change about what Pulumi does to a cluster."""

from __future__ import annotations

from msgspec.structs import replace
from pulumiworld import World, config, job, pod, resource

from seatrial.model.program import Manner, RegisteredOptions, Registration
from seatrial.model.resource import Body


def test_a_renamed_resource_is_created_while_the_old_one_exists() -> None:
    world = World()
    world.up(resource(config("a", v="1"), name="old"))
    ended = world.up(resource(config("a", v="1"), name="new"))
    assert 'configmaps "a" already exists\n\nThe resource already exists in the cluster.' in ended.error
    assert "  - Renaming a Pulumi resource: use an alias to preserve the identity,\n" in ended.error


def test_an_alias_keeps_the_identity_of_a_resource() -> None:
    world = World()
    old = resource(config("a", v="1"), name="old")
    world.up(old, resource(config("b", v="1"), depends=[old]))
    new = replace(resource(config("a", v="1"), name="new"), aliases=(old.urn,))
    assert world.up(new, resource(config("b", v="1"), depends=[new])).outcome == "ok"
    assert world.writes(1) == []
    assert world.destroy().outcome == "ok"
    assert world.writes(2) == ["delete ConfigMap/default/b", "delete ConfigMap/default/a"]


def test_an_imported_object_must_exist() -> None:
    ended = World().up(resource(config("a"), options=RegisteredOptions(imports="default/a")))
    assert ended.error == "kubernetes:core/v1:ConfigMap (a): error: resource 'default/a' does not exist"


def test_an_imported_object_is_updated_and_never_created() -> None:
    world = World()
    world.put(config("a", labels={"of": "others"}, v="1"))
    taken = RegisteredOptions(imports="default/a")
    mine = resource(config("a", labels={"of": "us"}, v="1"), options=taken)
    assert (
        'The resource managed by field manager "pulumi-kubernetes-f1d0b40a" had an apply conflict'
        in world.up(mine).error
    )
    assert world.up(replace(mine, manner=Manner(forces=True))).outcome == "ok"
    assert world.writes(0) == []
    live = world.get("ConfigMap", "a")
    assert live and live["metadata"]["labels"] == {"of": "us"}
    assert world.up(resource(config("a", labels={"of": "all"}, v="1"), options=taken)).outcome == "ok"


def test_an_imported_object_is_not_replaced() -> None:
    world = World()
    world.put(config("a", v="1"))
    ended = world.up(resource(config("a", v="2"), options=RegisteredOptions(imports="default/a")))
    assert ended.error == (
        "kubernetes:core/v1:ConfigMap (a): error: previously-imported resources that still specify an ID may not be "
        "replaced; please remove the `import` declaration from your program;"
    )
    live = world.get("ConfigMap", "a")
    assert live and live["data"] == {"v": "1"}


def test_a_provider_may_enable_mutable_configs_upserts_and_forced_patches() -> None:
    world = World()
    in_place = Manner(mutable_configs=True)
    world.up(_by(in_place, "a", "1"))
    world.up(_by(in_place, "a", "2"))
    assert world.writes(1) == []
    world.put(config("b", v="1"))
    ended = world.up(_by(in_place, "a", "2"), _by(Manner(upserts=True), "b", "2"))
    assert "conflict" in ended.error
    assert world.up(_by(in_place, "a", "2"), _by(Manner(upserts=True, forces=True), "b", "2")).outcome == "ok"


def test_an_up_sees_changes_of_others_only_after_a_refresh() -> None:
    world = World()
    world.up(resource(config("a", labels={"v": "1"})), resource(config("b")))
    world.remove(config("b"))
    world.put(config("a", labels={"v": "2"}))
    world.up(resource(config("a", labels={"v": "1"})), resource(config("b")))
    assert world.writes(1) == [] and not world.get("ConfigMap", "b")
    world.refresh()
    again = replace(resource(config("a", labels={"v": "1"})), manner=Manner(forces=True))
    assert world.up(again, resource(config("b"))).outcome == "ok"
    live = world.get("ConfigMap", "a")
    assert world.get("ConfigMap", "b") and live and live["metadata"]["labels"] == {"v": "1"}


def test_an_object_that_is_unready_on_refresh_is_awaited_again() -> None:
    world = World()
    skips = {"pulumi.com/skipAwait": "true"}
    late = pod(envFrom=[{"configMapRef": {"name": "late"}}])
    assert world.up(resource({**late, "metadata": {**late["metadata"], "annotations": skips}})).outcome == "ok"
    world.refresh()
    assert world.up(resource(late)).outcome == "hung"


def test_an_ignored_field_of_another_manager_is_left_alone() -> None:
    world = World()
    ignores = RegisteredOptions(ignore_changes=("metadata.labels.size",))
    world.up(resource(config("a", labels={"size": "1", "v": "1"}), options=ignores))
    world.put(config("a", labels={"size": "5"}))
    assert world.up(resource(config("a", labels={"size": "1", "v": "2"}), options=ignores)).outcome == "ok"
    assert _labels(world) == {"size": "5", "v": "2"}


def test_a_field_of_another_manager_is_a_conflict_unless_ignored() -> None:
    world = World()
    world.up(resource(config("a", labels={"size": "1", "v": "1"})))
    world.put(config("a", labels={"size": "5"}))
    assert "had an apply conflict" in world.up(resource(config("a", labels={"size": "1", "v": "2"}))).error


def test_a_patch_adds_fields_and_removes_them_when_deleted() -> None:
    world = World()
    world.put(config("a", labels={"of": "others"}, v="1"))
    patch = _patch(config("a", labels={"by": "patch"}))
    assert world.up(patch).outcome == "ok"
    assert _labels(world) == {"of": "others", "by": "patch"}
    assert world.up(_patch(config("a", labels={"by": "another"}))).outcome == "ok"
    assert _labels(world) == {"of": "others", "by": "another"}
    assert world.destroy().outcome == "ok"
    assert _labels(world) == {"of": "others"}
    assert world.writes(0) == []


def test_a_patch_of_foreign_fields_is_a_conflict_unless_forced() -> None:
    world = World()
    world.put(config("a", labels={"of": "others"}))
    ended = world.up(_patch(config("a", labels={"of": "patch"})))
    assert ended.error.endswith('Apply failed with 1 conflict: conflict with "another-team": .metadata.labels.of')
    forced = config("a", labels={"of": "patch"}, annotations={"pulumi.com/patchForce": "true"})
    assert world.up(_patch(forced)).outcome == "ok"


def test_a_patch_creates_a_missing_object_even_when_deleted() -> None:
    world = World()
    world.up(_patch(config("a", labels={"by": "patch"})))
    assert _labels(world) == {"by": "patch"}
    world.remove(config("a"))
    assert world.destroy().outcome == "ok"
    assert world.get("ConfigMap", "a")


def test_a_job_with_replace_unready_is_recreated_until_it_completes() -> None:
    world = World()
    late = job("j", {"pulumi.com/replaceUnready": "true"}, envFrom=[{"configMapRef": {"name": "late"}}])
    assert world.up(resource(late)).outcome == "hung"
    assert world.up(resource(late)).outcome == "hung"
    assert world.writes(1) == ["delete Job/default/j", "create Job/default/j"]
    assert world.up(resource(late), resource(config("late"))).outcome == "ok"
    world.up(resource(late), resource(config("late")))
    assert world.writes(3) == []


def _patch(body: Body) -> Registration:
    return replace(resource(body), patches=True)


def _labels(world: World) -> Body:
    live = world.get("ConfigMap", "a")
    assert live
    labels: Body = live["metadata"].get("labels") or {}
    return labels


def _by(manner: Manner, name: str, value: str) -> Registration:
    return replace(resource(config(name, v=value)), manner=manner)
