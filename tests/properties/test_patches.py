"""Properties of every patch."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from seatrial.cluster.discovery.schema import builtin_schema
from seatrial.cluster.verbs.patch import json_patch, merge_patch, strategic_patch
from seatrial.model.resource import Body

POD = builtin_schema("1.34", "", "v1", "Pod")

names = st.sampled_from("abcd")
scalars = st.one_of(st.booleans(), st.integers(-3, 3), names)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3), max_leaves=12
)
objects = st.dictionaries(names, values, max_size=4)


def items(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    item = st.fixed_dictionaries({"name": names}, optional=fields)
    return st.lists(item, max_size=3, unique_by=lambda found: found["name"])


env = items(value=names)
containers = items(image=names, env=env, command=st.lists(names, max_size=2))
pods = st.fixed_dictionaries(
    {},
    optional={
        "metadata": st.fixed_dictionaries({}, optional={"finalizers": st.lists(names, unique=True, max_size=3)}),
        "spec": st.fixed_dictionaries(
            {}, optional={"containers": containers, "nodeSelector": st.dictionaries(names, names, max_size=3)}
        ),
    },
)


def difference(old: Body, new: Body) -> Body:
    patch: Body = dict.fromkeys(old.keys() - new.keys())
    for key, value in new.items():
        before = old.get(key)
        if isinstance(value, dict) and isinstance(before, dict):
            patch[key] = difference(before, value)
        elif before is not value or key not in old:
            patch[key] = value
    return patch


@given(objects, objects)
def test_a_merge_patch_of_the_difference_gives_the_target(old: Body, new: Body) -> None:
    assert merge_patch(old, difference(old, new)) == new


@given(objects, objects)
def test_a_merge_patch_is_idempotent(live: Body, patch: Body) -> None:
    once = merge_patch(live, patch)
    assert merge_patch(once, patch) == once


@given(objects, objects)
def test_a_json_patch_can_turn_any_object_into_any_other(old: Body, new: Body) -> None:
    operations = [{"op": "remove", "path": f"/{key}"} for key in old]
    operations += [{"op": "add", "path": f"/{key}", "value": value} for key, value in new.items()]
    assert json_patch(old, operations) == new


@given(pods)
def test_a_strategic_patch_of_an_object_with_itself_changes_nothing(pod: Body) -> None:
    assert strategic_patch(pod, pod, POD) == pod


@given(pods, pods)
def test_a_strategic_patch_is_idempotent(live: Body, patch: Body) -> None:
    once = strategic_patch(live, patch, POD)
    assert strategic_patch(once, patch, POD) == once


@given(pods, pods)
def test_patches_do_not_change_their_arguments(live: Body, patch: Body) -> None:
    before = repr((live, patch))
    strategic_patch(live, patch, POD)
    merge_patch(live, patch)
    assert repr((live, patch)) == before
