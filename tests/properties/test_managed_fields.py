"""Properties of managedFields after any history of applies and updates."""

from collections.abc import Iterator
from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from seatrial.cluster.discovery.schema import builtin_schema
from seatrial.cluster.fields.fieldset import element, is_member
from seatrial.cluster.fields.managed import server_side_apply, track_update
from seatrial.cluster.fields.shape import ITEMS, Shape, shape_of
from seatrial.cluster.refusal import Refused
from seatrial.model.resource import Body

SCHEMA = builtin_schema("1.34", "apps", "v1", "Deployment")

names = st.sampled_from("abcd")
texts = st.dictionaries(names, names, max_size=3)


def unique(field: str, item: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(item, min_size=1, max_size=3, unique_by=lambda found: found[field])


env = st.fixed_dictionaries({"name": names}, optional={"value": names})
port = st.fixed_dictionaries({"containerPort": st.integers(1, 3)}, optional={"name": names})
container = st.fixed_dictionaries(
    {"name": names},
    optional={
        "image": names,
        "env": unique("name", env),
        "ports": unique("containerPort", port),
        "command": st.lists(names, min_size=1, max_size=2),
    },
)
pod = st.fixed_dictionaries({}, optional={"containers": unique("name", container), "nodeSelector": texts})
spec = st.fixed_dictionaries(
    {}, optional={"replicas": st.integers(1, 3), "template": st.fixed_dictionaries({"spec": pod})}
)
parts = st.fixed_dictionaries({}, optional={"labels": texts, "finalizers": st.lists(names, unique=True, max_size=3)})


def as_deployment(metadata: Body, spec: Body) -> Body:
    meta = {"name": "d", **{key: value for key, value in metadata.items() if value}}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec}


deployments = st.builds(as_deployment, parts, spec)
managers = st.sampled_from(("helm", "argo", "kubectl"))
steps = st.lists(st.tuples(st.sampled_from(("apply", "force", "update")), managers, deployments), max_size=5)


def apply(live: Body | None, body: Body, manager: str, *, force: bool = False) -> Body:
    return server_side_apply(live, body, manager=manager, force=force, schema=SCHEMA, time="T1")


def played(history: list[tuple[str, str, Body]]) -> Body | None:
    """The object after a history in which refused applies change nothing."""
    live: Body | None = None
    for act, manager, body in history:
        if act == "update":
            live = track_update(live, body, manager=manager, schema=SCHEMA, time="T1")
            continue
        try:
            live = apply(live, body, manager, force=act == "force")
        except Refused as refused:
            assert refused.code == 409
    return live


def members(fields: Body, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every path in a set."""
    for name, node in fields.items():
        if name != ".":
            if is_member(node):
                yield (*path, name)
            yield from members(node, (*path, name))


def paths_of(value: Any, shape: Shape, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every path in an object."""
    if isinstance(value, dict):
        for key, child in value.items():
            yield (*path, f"f:{key}")
            yield from paths_of(child, shape.below[key], (*path, f"f:{key}"))
    elif isinstance(value, list) and shape.list_type != "atomic":
        for item in value:
            name = element(item, shape)
            yield (*path, name)
            yield from paths_of(item, shape.below[ITEMS], (*path, name))


def owned_by(body: Body, manager: str, operation: str) -> set[tuple[str, ...]]:
    for entry in body["metadata"].get("managedFields", ()):
        if (entry["manager"], entry["operation"]) == (manager, operation):
            return set(members(entry["fieldsV1"]))
    return set()


def bare(body: Body) -> Body:
    meta = {key: value for key, value in body["metadata"].items() if key != "managedFields"}
    return {**body, "metadata": meta}


@given(steps, managers, deployments)
def test_the_same_apply_twice_changes_nothing(history: list[Any], manager: str, body: Body) -> None:
    once = apply(played(history), body, manager, force=True)
    assert apply(once, body, manager) is once


@given(steps, managers, deployments)
def test_after_force_the_manager_owns_what_it_applied(history: list[Any], manager: str, body: Body) -> None:
    after = apply(played(history), body, manager, force=True)
    fresh = apply(None, body, manager)
    assert owned_by(after, manager, "Apply") == owned_by(fresh, manager, "Apply")
    again = apply(after, body, manager)
    assert bare(again) == bare(after)


@given(steps)
def test_owned_fields_exist(history: list[Any]) -> None:
    live = played(history)
    assume(live is not None)
    assert live is not None
    there = set(paths_of(live, shape_of(SCHEMA)))
    for entry in live["metadata"].get("managedFields", ()):
        assert set(members(entry["fieldsV1"])) <= there


@given(deployments, deployments)
def test_applying_nothing_removes_exactly_the_fields_without_another_owner(mine: Body, theirs: Body) -> None:
    alone = apply(None, theirs, "argo")
    both = apply(alone, mine, "helm", force=True)
    nothing = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}}
    after = apply(both, nothing, "helm")
    kept = owned_by(both, "argo", "Apply")
    stored = set(paths_of(bare(after), shape_of(SCHEMA)))
    assert owned_by(after, "helm", "Apply") == set()
    assert kept <= stored
    holders = {path[:length] for path in kept for length in range(len(path))}
    assert not {path for path in owned_by(both, "helm", "Apply") - kept - holders if path in stored}


@given(deployments, deployments)
def test_managers_of_different_fields_never_conflict(one: Body, other: Body) -> None:
    first = apply(None, one, "helm")
    second = apply(None, other, "argo")
    assume(not owned_by(first, "helm", "Apply") & owned_by(second, "argo", "Apply"))
    both = apply(first, other, "argo")
    assert owned_by(both, "helm", "Apply") == owned_by(first, "helm", "Apply")
    assert owned_by(both, "argo", "Apply") == owned_by(second, "argo", "Apply")
    there = set(paths_of(both, shape_of(SCHEMA)))
    assert owned_by(first, "helm", "Apply") | owned_by(second, "argo", "Apply") <= there


@given(steps, managers, deployments)
def test_arguments_are_not_changed(history: list[Any], manager: str, body: Body) -> None:
    live = played(history)
    before = repr((live, body))
    apply(live, body, manager, force=True)
    track_update(live, body, manager=manager, schema=SCHEMA, time="T2")
    assert repr((live, body)) == before
