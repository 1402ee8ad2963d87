"""What Pulumi replaces, what it deletes along with it, in which order, and what becomes of it when that fails."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from pulumiworld import WEBHOOK, World, config, namespace, pod, release, resource

from seatrial.engines.pulumi.diffing import FieldChange, changes, covers, path_of, touches
from seatrial.model.program import RegisteredOptions, Registration
from seatrial.model.resource import Body


def test_a_resource_with_its_spec_from_outputs_is_deleted_first_and_recreated_last() -> None:
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
def test_a_resource_that_can_change_in_place_or_only_depends_stays(body: str, made_of: str) -> None:
    world = World()
    for value in ("1", "2"):
        first = resource(config("a", v=value))
        second = resource(BODIES[body], depends=[first], made_of={made_of: [first]} if made_of else {})
        world.up(first, second)
    assert world.writes(1) == ["delete ConfigMap/default/a", "create ConfigMap/default/a"]


@pytest.mark.parametrize("body", ["service", "deployment", "namespace", "claim", "config"])
def test_a_resource_with_its_metadata_from_outputs_is_deleted_whatever_its_kind(body: str) -> None:
    world = World()
    for value in ("1", "2"):
        first = resource(config("a", v=value))
        world.up(first, resource(BODIES[body], name="other", made_of={"metadata": [first]}))
    assert [line.split()[0] for line in world.writes(1)] == ["delete", "delete", "create", "create"]


def test_deletion_follows_dependents_that_are_replaced_too() -> None:
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


def test_a_release_is_deleted_if_its_name_or_namespace_comes_from_outputs() -> None:
    world = World()
    for value in ("1", "2"):
        first = resource(config("a", v=value))
        world.up(first, _made_of(release(config("in-it")), "namespace", first))
    assert world.writes(1)[:2] == ["delete ConfigMap/default/in-it", "delete ConfigMap/default/a"]


def test_ignore_changes_keeps_a_dependent_and_replace_on_changes_deletes_it() -> None:
    for options, goes in (
        (RegisteredOptions(ignore_changes=("spec",)), False),
        (RegisteredOptions(ignore_changes=("spec.replicas",)), True),
    ):
        world = World()
        for value in ("1", "2"):
            first = resource(config("a", v=value))
            world.up(first, resource(BODIES["deployment"], made_of={"spec": [first]}, options=options))
        assert ("delete Deployment/default/web" in world.writes(1)) is goes
    world = World()
    on_change = RegisteredOptions(replace_on_changes=("spec.ports",))
    for value in ("1", "2"):
        first = resource(config("a", v=value))
        world.up(first, resource(BODIES["service"], made_of={"spec": [first]}, options=on_change))
    assert "delete Service/default/web" in world.writes(1)


def test_a_replacement_with_a_new_name_deletes_no_dependents() -> None:
    world = World()
    for value in ("1", "2"):
        first = resource(config(f"a-{value}", v=value), name="a", auto_named=True)
        world.up(first, resource(BODIES["deployment"], made_of={"spec": [first]}))
    assert world.writes(1) == ["create ConfigMap/default/a-2", "delete ConfigMap/default/a-1"]


def test_a_protected_dependent_blocks_the_replacement() -> None:
    world = World()
    for value in ("1", "2"):
        first = resource(config("a", v=value))
        ended = world.up(
            first, resource(BODIES["deployment"], made_of={"spec": [first]}, options=RegisteredOptions(protect=True))
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


def test_a_deleted_with_resource_is_replaced_with_its_owner_and_not_deleted_itself() -> None:
    world = World()
    for value in ("1", "2"):
        first = resource(config("a", v=value))
        world.up(first, resource(config("b"), depends=[first], options=RegisteredOptions(deleted_with=first.urn)))
    assert world.writes(1)[:2] == ["delete ConfigMap/default/a", "create ConfigMap/default/a"]


def test_a_deleted_with_resource_is_created_while_the_old_owner_exists() -> None:
    world = World()
    for value in ("1", "2"):
        first = resource(config(f"a-{value}", v=value), name="a", auto_named=True)
        ended = world.up(
            first, resource(config("b"), depends=[first], options=RegisteredOptions(deleted_with=first.urn))
        )
    assert 'configmaps "b" already exists' in ended.error


def test_resources_deleted_before_a_rejected_deletion_are_recreated_by_the_next_run() -> None:
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
        ("2", RegisteredOptions(), ["create ConfigMap/default/a"]),  # Still another one than was deleted.
        ("1", RegisteredOptions(), ["create ConfigMap/default/a", "delete ConfigMap/default/a"]),
        ("1", RegisteredOptions(delete_before_replace=True), ["create ConfigMap/default/a"]),
    ],
)
def test_a_pending_replacement_is_deleted_again_after_it_is_recreated(
    value: str, options: RegisteredOptions, writes: list[str]
) -> None:
    world = World()
    world.up(resource(config("a", v="1")))
    assert "is invalid" in world.up(resource({**config("a"), "data": {"not a key": "x"}})).error
    assert not world.get("ConfigMap", "a")
    assert world.up(resource(config("a", v=value), options=options)).outcome == "ok"
    assert world.writes(2) == writes
    world.up(resource(config("a", v=value), options=options))
    assert world.writes(3) == []


def test_a_pending_replacement_is_forgotten_if_the_program_drops_it() -> None:
    world = World()
    world.up(resource(config("a", v="1")))
    world.up(resource({**config("a"), "data": {"not a key": "x"}}))
    assert world.up(resource(config("b"))).outcome == "ok"
    assert world.destroy().outcome == "ok"
    assert world.writes(2) == ["create ConfigMap/default/b", "delete ConfigMap/default/b"]


def test_an_unready_resource_is_replaced_if_any_change_replaces_it() -> None:
    world = World()
    options = RegisteredOptions(replace_on_changes=("*",))
    stuck = pod(envFrom=[{"configMapRef": {"name": "late"}}])
    assert world.up(resource(stuck, options=options)).outcome == "hung"
    assert world.up(resource(stuck, options=options), resource(config("late"))).outcome == "ok"
    assert world.writes(1)[0] == "delete Pod/default/p"


def test_a_change_is_listed_field_by_field() -> None:
    old = {"spec": {"replicas": 1, "containers": [{"name": "a", "image": "x"}, {"name": "b"}], "kept": 1}}
    new = {"spec": {"replicas": 2, "containers": [{"name": "a", "image": "y"}], "added": {"b": 1}, "kept": 1}}
    assert list(changes(old, new)) == [
        FieldChange(("spec", "replicas"), 2),
        FieldChange(("spec", "containers", 0, "image"), "y"),
        FieldChange(("spec", "containers", 1)),
        FieldChange(("spec", "added"), {"b": 1}),
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
def test_a_path_covers_its_parents_and_its_children(field: str, path: str, value: Any, expected: bool) -> None:
    assert touches(path_of(field), FieldChange(path_of(path), value)) is expected


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
