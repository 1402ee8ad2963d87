"""Options of resources, and `refresh`: what they change about what Pulumi does to a cluster."""

from __future__ import annotations

from msgspec.structs import replace
from pulumiworld import World, config, job, pod, resource

from seatrial.model.program import Manner, Options, Registration
from seatrial.model.resource import Body


def test_a_resource_under_another_name_is_made_beside_the_old_one_which_is_there_still() -> None:
    world = World()
    world.up(resource(config("a", v="1"), name="old"))
    ended = world.up(resource(config("a", v="1"), name="new"))
    assert 'configmaps "a" already exists\n\nThe resource already exists in the cluster.' in ended.error
    assert "  - Renaming a Pulumi resource: use an alias to preserve the identity,\n" in ended.error


def test_a_resource_with_an_alias_is_the_one_that_was_known_by_it() -> None:
    world = World()
    old = resource(config("a", v="1"), name="old")
    world.up(old, resource(config("b", v="1"), depends=[old]))
    new = replace(resource(config("a", v="1"), name="new"), aliases=(old.urn,))
    assert world.up(new, resource(config("b", v="1"), depends=[new])).outcome == "ok"
    assert world.writes(1) == []
    assert world.destroy().outcome == "ok"
    assert world.writes(2) == ["delete ConfigMap/default/b", "delete ConfigMap/default/a"]


def test_what_is_to_be_taken_over_has_to_be_there() -> None:
    ended = World().up(resource(config("a"), options=Options(imports="default/a")))
    assert ended.error == "kubernetes:core/v1:ConfigMap (a): error: resource 'default/a' does not exist"


def test_what_is_taken_over_is_changed_to_what_the_program_says_and_never_made() -> None:
    world = World()
    world.put(config("a", labels={"of": "others"}, v="1"))
    taken = Options(imports="default/a")
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


def test_what_is_taken_over_is_not_replaced() -> None:
    world = World()
    world.put(config("a", v="1"))
    ended = world.up(resource(config("a", v="2"), options=Options(imports="default/a")))
    assert ended.error == (
        "kubernetes:core/v1:ConfigMap (a): error: previously-imported resources that still specify an ID may not be "
        "replaced; please remove the `import` declaration from your program;"
    )
    live = world.get("ConfigMap", "a")
    assert live and live["data"] == {"v": "1"}


def test_a_provider_may_change_configs_in_place_take_over_what_is_there_and_fields_of_others() -> None:
    world = World()
    in_place = Manner(mutable_configs=True)
    world.up(_by(in_place, "a", "1"))
    world.up(_by(in_place, "a", "2"))
    assert world.writes(1) == []
    world.put(config("b", v="1"))
    ended = world.up(_by(in_place, "a", "2"), _by(Manner(upserts=True), "b", "2"))
    assert "conflict" in ended.error
    assert world.up(_by(in_place, "a", "2"), _by(Manner(upserts=True, forces=True), "b", "2")).outcome == "ok"


def test_an_up_does_not_see_what_others_did_before_a_refresh_does() -> None:
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


def test_what_is_not_ready_when_it_is_looked_at_is_gone_back_to() -> None:
    world = World()
    skips = {"pulumi.com/skipAwait": "true"}
    late = pod(envFrom=[{"configMapRef": {"name": "late"}}])
    assert world.up(resource({**late, "metadata": {**late["metadata"], "annotations": skips}})).outcome == "ok"
    world.refresh()
    assert world.up(resource(late)).outcome == "hung"


def test_what_is_ignored_and_has_become_anothers_is_left_to_him() -> None:
    world = World()
    ignores = Options(ignore_changes=("metadata.labels.size",))
    world.up(resource(config("a", labels={"size": "1", "v": "1"}), options=ignores))
    world.put(config("a", labels={"size": "5"}))
    assert world.up(resource(config("a", labels={"size": "1", "v": "2"}), options=ignores)).outcome == "ok"
    assert _labels(world) == {"size": "5", "v": "2"}


def test_what_is_not_ignored_is_in_conflict_where_it_has_become_anothers() -> None:
    world = World()
    world.up(resource(config("a", labels={"size": "1", "v": "1"})))
    world.put(config("a", labels={"size": "5"}))
    assert "had an apply conflict" in world.up(resource(config("a", labels={"size": "1", "v": "2"}))).error


def test_a_patch_adds_to_what_is_there_and_gives_up_its_fields_when_it_goes() -> None:
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


def test_a_patch_of_fields_that_others_have_is_refused_unless_it_takes_them() -> None:
    world = World()
    world.put(config("a", labels={"of": "others"}))
    ended = world.up(_patch(config("a", labels={"of": "patch"})))
    assert ended.error.endswith('Apply failed with 1 conflict: conflict with "somebody": .metadata.labels.of')
    forced = config("a", labels={"of": "patch"}, annotations={"pulumi.com/patchForce": "true"})
    assert world.up(_patch(forced)).outcome == "ok"


def test_a_patch_makes_what_is_not_there_even_when_it_goes() -> None:
    world = World()
    world.up(_patch(config("a", labels={"by": "patch"})))
    assert _labels(world) == {"by": "patch"}
    world.remove(config("a"))
    assert world.destroy().outcome == "ok"
    assert world.get("ConfigMap", "a")


def test_a_job_that_is_replaced_unless_ready_is_made_anew_until_it_completes() -> None:
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
