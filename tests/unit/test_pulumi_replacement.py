"""What Pulumi replaces, what it deletes along with it, in which order, and what becomes of it when that fails."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from pulumiworld import WEBHOOK, World, config, namespace, pod, release, resource

from seatrial.engines.pulumi.diffing import Change, changes, covers, path_of, touches
from seatrial.model.program import Options, Registration
from seatrial.model.resource import Body


def test_what_has_its_spec_from_outputs_goes_before_what_it_is_made_of_and_comes_after_it() -> None:
    world = World()
    world.up(*stack("1"))
    assert world.up(*stack("2")).outcome == "ok"
    assert world.writes(1) == [
        "delete Deployment/default/web",
        "delete ConfigMap/default/a",
        "create ConfigMap/default/a",
        "create Deployment/default/web",
    ]


@pytest.mark.parametrize(
    ("body", "made_of"),
    [
        ("service", "spec"),
        ("deployment", ""),
        ("namespace", ""),
    ],
)
def test_what_can_be_changed_in_place_or_only_depends_is_left_alone(body: str, made_of: str) -> None:
    world = World()
    for value in ("1", "2"):
        first = resource(config("a", v=value))
        second = resource(BODIES[body], depends=[first], made_of={made_of: [first]} if made_of else {})
        world.up(first, second)
    assert world.writes(1) == ["delete ConfigMap/default/a", "create ConfigMap/default/a"]


@pytest.mark.parametrize("body", ["service", "deployment", "namespace", "claim", "config"])
def test_whoever_has_its_metadata_from_outputs_goes_along_of_whatever_kind(body: str) -> None:
    world = World()
    for value in ("1", "2"):
        first = resource(config("a", v=value))
        world.up(first, resource(BODIES[body], name="other", made_of={"metadata": [first]}))
    assert [line.split()[0] for line in world.writes(1)] == ["delete", "delete", "create", "create"]


def test_it_goes_on_through_those_that_go_along_and_ends_at_those_that_do_not() -> None:
    world = World()
    for value in ("1", "2"):
        a = resource(config("a", v=value))
        b = resource(config("b", v="1"), made_of={"data": [a]})
        c = resource(config("c", v="1"), made_of={"data": [b]})
        d = resource(config("d", v="1"), depends=[c])
        e = resource(config("e", v="1"), made_of={"data": [d]})
        world.up(a, b, c, d, e)
    assert world.writes(1) == [
        *("delete ConfigMap/default/c", "delete ConfigMap/default/b", "delete ConfigMap/default/a"),
        *("create ConfigMap/default/a", "create ConfigMap/default/b", "create ConfigMap/default/c"),
    ]


def test_a_release_goes_along_where_its_name_or_namespace_is_made_of_outputs() -> None:
    world = World()
    for value in ("1", "2"):
        first = resource(config("a", v=value))
        world.up(first, _made_of(release(config("in-it")), "namespace", first))
    assert world.writes(1)[:2] == ["delete ConfigMap/default/in-it", "delete ConfigMap/default/a"]


def test_what_ignores_the_change_stays_and_what_is_to_be_replaced_on_it_goes() -> None:
    for options, goes in (
        (Options(ignore_changes=("spec",)), False),
        (Options(ignore_changes=("spec.replicas",)), True),
    ):
        world = World()
        for value in ("1", "2"):
            first = resource(config("a", v=value))
            world.up(first, resource(BODIES["deployment"], made_of={"spec": [first]}, options=options))
        assert ("delete Deployment/default/web" in world.writes(1)) is goes
    world = World()
    on_change = Options(replace_on_changes=("spec.ports",))
    for value in ("1", "2"):
        first = resource(config("a", v=value))
        world.up(first, resource(BODIES["service"], made_of={"spec": [first]}, options=on_change))
    assert "delete Service/default/web" in world.writes(1)


def test_what_is_made_under_a_new_name_takes_nothing_along() -> None:
    world = World()
    for value in ("1", "2"):
        first = resource(config(f"a-{value}", v=value), name="a", auto_named=True)
        world.up(first, resource(BODIES["deployment"], made_of={"spec": [first]}))
    assert world.writes(1) == ["create ConfigMap/default/a-2", "delete ConfigMap/default/a-1"]


def test_nothing_is_touched_where_one_that_would_go_along_is_protected() -> None:
    world = World()
    for value in ("1", "2"):
        first = resource(config("a", v=value))
        ended = world.up(
            first, resource(BODIES["deployment"], made_of={"spec": [first]}, options=Options(protect=True))
        )
    assert world.writes(1) == []
    first_urn = "urn:pulumi:dev::app::kubernetes:core/v1:ConfigMap::a"
    urn = "urn:pulumi:dev::app::kubernetes:apps/v1:Deployment::web"
    assert ended.error == (
        f'kubernetes:core/v1:ConfigMap (a): error: unable to replace resource "{urn}" as part of replacing '
        f'"{first_urn}" as it is currently marked for protection. To unprotect the resource, remove the `protect` flag '
        "from the resource in your Pulumi program and run `pulumi up`, or use the command:\n"
        f"`pulumi state unprotect '{urn}'`"
    )


def test_who_is_deleted_with_another_goes_and_comes_with_it_and_is_never_deleted_by_itself() -> None:
    world = World()
    for value in ("1", "2"):
        first = resource(config("a", v=value))
        world.up(first, resource(config("b"), depends=[first], options=Options(deleted_with=first.urn)))
    assert world.writes(1)[:2] == ["delete ConfigMap/default/a", "create ConfigMap/default/a"]


def test_who_is_deleted_with_one_under_a_new_name_is_made_while_the_old_one_is_there() -> None:
    world = World()
    for value in ("1", "2"):
        first = resource(config(f"a-{value}", v=value), name="a", auto_named=True)
        ended = world.up(first, resource(config("b"), depends=[first], options=Options(deleted_with=first.urn)))
    assert 'configmaps "b" already exists' in ended.error


def test_what_is_gone_already_when_a_deletion_is_refused_is_made_again_by_the_next_run() -> None:
    world = World()
    held = {"gated": "yes"}
    world.up(*stack("1", labels=held))
    world.up(*stack("1", labels=held), resource(WEBHOOK))
    ended = world.up(*stack("2", labels=held), resource(WEBHOOK))
    assert ended.error.startswith("kubernetes:core/v1:ConfigMap (a): error: Internal error occurred: failed calling")
    assert not world.get("Deployment", "web", "apps") and world.get("ConfigMap", "a")
    world.remove(WEBHOOK)
    assert world.up(*stack("2", labels=held)).outcome == "ok"
    assert world.get("Deployment", "web", "apps")


@pytest.mark.parametrize(
    ("value", "options", "writes"),
    [
        ("2", Options(), ["create ConfigMap/default/a"]),  # Still another one than was deleted.
        ("1", Options(), ["create ConfigMap/default/a", "delete ConfigMap/default/a"]),
        ("1", Options(delete_before_replace=True), ["create ConfigMap/default/a"]),
    ],
)
def test_what_was_deleted_and_not_made_is_made_and_deleted_again_where_nothing_says_that_it_is_gone(
    value: str, options: Options, writes: list[str]
) -> None:
    world = World()
    world.up(resource(config("a", v="1")))
    assert "is invalid" in world.up(resource({**config("a"), "data": {"not a key": "x"}})).error
    assert not world.get("ConfigMap", "a")
    assert world.up(resource(config("a", v=value), options=options)).outcome == "ok"
    assert world.writes(2) == writes
    world.up(resource(config("a", v=value), options=options))
    assert world.writes(3) == []


def test_what_was_deleted_and_not_made_is_forgotten_where_the_program_has_it_no_longer() -> None:
    world = World()
    world.up(resource(config("a", v="1")))
    world.up(resource({**config("a"), "data": {"not a key": "x"}}))
    assert world.up(resource(config("b"))).outcome == "ok"
    assert world.destroy().outcome == "ok"
    assert world.writes(2) == ["create ConfigMap/default/b", "delete ConfigMap/default/b"]


def test_what_never_got_ready_is_replaced_where_any_change_is_to_replace_it() -> None:
    world = World()
    options = Options(replace_on_changes=("*",))
    stuck = pod(envFrom=[{"configMapRef": {"name": "late"}}])
    assert world.up(resource(stuck, options=options)).outcome == "hung"
    assert world.up(resource(stuck, options=options), resource(config("late"))).outcome == "ok"
    assert world.writes(1)[0] == "delete Pod/default/p"


def test_a_change_is_told_member_by_member() -> None:
    old = {"spec": {"replicas": 1, "containers": [{"name": "a", "image": "x"}, {"name": "b"}], "kept": 1}}
    new = {"spec": {"replicas": 2, "containers": [{"name": "a", "image": "y"}], "added": {"b": 1}, "kept": 1}}
    assert list(changes(old, new)) == [
        Change(("spec", "replicas"), 2),
        Change(("spec", "containers", 0, "image"), "y"),
        Change(("spec", "containers", 1)),
        Change(("spec", "added"), {"b": 1}),
    ]


@pytest.mark.parametrize(
    ("field", "path", "value", "expected"),
    [
        ("data", "data.greeting", None, True),
        ("spec.selector", "spec", {"selector": {}}, True),
        ("spec.selector", "spec", {"replicas": 1}, False),
        ("spec.selector", "spec.replicas", 1, False),
        ("spec.containers[*].image", "spec.containers[0].image", "x", True),
        ("spec.containers[*].image", "spec.containers[1]", {"image": "x"}, True),
        ("spec.containers[*].image", "spec.containers[1]", None, False),
        ("spec.containers[*].image", "spec.containers", None, True),
    ],
)
def test_a_field_is_touched_by_what_is_in_it_and_by_what_it_is_in(
    field: str, path: str, value: Any, expected: bool
) -> None:
    assert touches(path_of(field), Change(path_of(path), value)) is expected


def test_a_path_leads_through_names_indices_and_anything() -> None:
    assert path_of('metadata.labels["app.kubernetes.io/name"]') == ("metadata", "labels", "app.kubernetes.io/name")
    assert path_of("spec.containers[0].image") == ("spec", "containers", 0, "image")
    assert covers(("*",), ("metadata", "labels")) and covers(("spec", "*"), ("spec", "replicas"))
    assert not covers(("spec", "*"), ("spec",))


def stack(value: str, labels: Body | None = None) -> list[Registration]:
    """A ConfigMap, and a Deployment whose spec is made of an output of it."""
    first = resource(config("a", labels=labels, v=value))
    return [first, resource(BODIES["deployment"], made_of={"spec": [first]})]


def _made_of(one: Registration, key: str, other: Registration) -> Registration:
    return replace(one, dependencies=(other.urn,), property_dependencies={key: (other.urn,)})


def _meta(name: str) -> Body:
    return {"name": name, "namespace": "default"}


SELECTOR = {"matchLabels": {"app": "web"}}
BODIES: dict[str, Body] = {
    "config": config("b", v="1"),
    "namespace": namespace("team"),
    "service": {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _meta("web"),
        "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]},
    },
    "claim": {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": _meta("data"),
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    },
    "deployment": {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": _meta("web"),
        "spec": {
            "replicas": 1,
            "selector": SELECTOR,
            "template": {"metadata": {"labels": SELECTOR["matchLabels"]}, "spec": pod()["spec"]},
        },
    },
}
