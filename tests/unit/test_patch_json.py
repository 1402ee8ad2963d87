"""JSON patches and JSON merge patches, with the results of a real API server (1.34)."""

from typing import Any

import pytest

from seatrial.cluster.refusal import Refused
from seatrial.cluster.verbs.patch import json_patch, merge_patch
from seatrial.model.resource import Body

LIVE: Body = {
    "kind": "ConfigMap",
    "metadata": {"name": "a", "labels": {"app.kubernetes.io/name": "web"}, "finalizers": ["x/a", "x/b"]},
    "data": {"a": "1", "b~c": "2"},
}


FINALIZERS = "/metadata/finalizers"
NAME = "/metadata/labels/app.kubernetes.io~1name"


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        ({"op": "add", "path": "/data/z", "value": "3"}, {"data": {"a": "1", "b~c": "2", "z": "3"}}),
        ({"op": "add", "path": f"{FINALIZERS}/1", "value": "x/n"}, {"finalizers": ["x/a", "x/n", "x/b"]}),
        ({"op": "add", "path": f"{FINALIZERS}/-", "value": "x/n"}, {"finalizers": ["x/a", "x/b", "x/n"]}),
        ({"op": "add", "path": f"{FINALIZERS}/-1", "value": "x/n"}, {"finalizers": ["x/a", "x/b", "x/n"]}),
        ({"op": "remove", "path": f"{FINALIZERS}/-1"}, {"finalizers": ["x/a"]}),
        ({"op": "remove", "path": "/data/b~0c"}, {"data": {"a": "1"}}),
        ({"op": "replace", "path": NAME, "value": "db"}, {"labels": {"app.kubernetes.io/name": "db"}}),
        ({"op": "replace", "path": f"{FINALIZERS}/0", "value": "x/n"}, {"finalizers": ["x/n", "x/b"]}),
        ({"op": "move", "from": "/data/a", "path": "/data/z"}, {"data": {"b~c": "2", "z": "1"}}),
        ({"op": "copy", "from": "/data", "path": "/metadata/labels"}, {"labels": {"a": "1", "b~c": "2"}}),
    ],
)
def test_each_operation_changes_its_path(operation: Body, expected: Body) -> None:
    patched = json_patch(LIVE, [operation])
    found = {**patched["metadata"], "data": patched["data"]}
    assert found == {**LIVE["metadata"], "data": LIVE["data"], **expected}


def test_operations_see_the_results_of_earlier_ones() -> None:
    operations = [
        {"op": "add", "path": "/spec", "value": {}},
        {"op": "add", "path": "/spec/list", "value": [1]},
        {"op": "test", "path": "/spec/list/0", "value": 1},
        {"op": "move", "from": "/spec/list/0", "path": "/spec/one"},
    ]
    assert json_patch({"kind": "X"}, operations) == {"kind": "X", "spec": {"list": [], "one": 1}}


def test_replacing_a_missing_key_adds_it() -> None:
    assert json_patch({"data": {}}, [{"op": "replace", "path": "/data/n", "value": "1"}]) == {"data": {"n": "1"}}


def test_replacing_the_whole_object_by_a_string_is_ignored() -> None:
    assert json_patch(LIVE, [{"op": "replace", "path": "", "value": "2"}]) == LIVE
    assert json_patch(LIVE, [{"op": "replace", "path": "", "value": {"a": 1}}]) == {"a": 1}


def test_a_missing_field_equals_null() -> None:
    assert json_patch(LIVE, [{"op": "test", "path": "/data/none", "value": None}]) == LIVE


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "remove", "path": "/data/none"},
        {"op": "remove", "path": "/none/none"},
        {"op": "remove", "path": "/metadata/finalizers/2"},
        {"op": "remove", "path": "/metadata/finalizers/one"},
        {"op": "remove", "path": ""},
        {"op": "add", "path": "/metadata/finalizers/3", "value": "x/n"},
        {"op": "add", "path": "/kind/below", "value": "x"},
        {"op": "add", "value": "x"},
        {"op": "replace", "path": "/metadata/finalizers/2", "value": "x/n"},
        {"op": "replace", "path": "/kind/below", "value": "x"},
        {"op": "move", "from": "/data/none", "path": "/data/z"},
        {"op": "copy", "from": "/none/none", "path": "/data/z"},
        {"op": "test", "path": "/data/a", "value": "2"},
        {"op": "test", "path": "/data/a"},
        {"op": "shout", "path": "/data/a"},
    ],
)
def test_a_failing_operation_is_refused_without_a_reason(operation: Body) -> None:
    with pytest.raises(Refused) as refused:
        json_patch(LIVE, [operation])
    assert refused.value.status() == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "the server rejected our request due to an error in our request",
        "reason": "Invalid",
        "code": 422,
    }


@pytest.mark.parametrize(
    ("operations", "message"),
    [
        (
            {"a": 1},
            "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp",
        ),
        ([1], "error decoding patch: json: cannot unmarshal number into Go value of type handlers.jsonPatchOp"),
    ],
)
def test_a_json_patch_must_be_a_list_of_operations(operations: Any, message: str) -> None:
    with pytest.raises(Refused) as refused:
        json_patch(LIVE, operations)
    assert (refused.value.code, refused.value.message) == (400, message)


def test_null_is_a_patch_without_operations() -> None:
    assert json_patch(LIVE, None) == LIVE


def test_the_number_of_operations_is_limited() -> None:
    with pytest.raises(Refused) as refused:
        json_patch(LIVE, [{"op": "test", "path": "/kind", "value": "ConfigMap"}] * 10_001)
    assert (refused.value.code, refused.value.message) == (
        413,
        "The allowed maximum operations in a JSON patch is 10000, got 10001",
    )


def test_patches_do_not_change_the_live_object_and_share_the_rest() -> None:
    patched = json_patch(LIVE, [{"op": "add", "path": "/data/z", "value": "3"}])
    merged = merge_patch(LIVE, {"data": {"z": "3"}})
    assert "z" not in LIVE["data"]
    assert patched["metadata"] is LIVE["metadata"]
    assert merged["metadata"] is LIVE["metadata"]


def test_a_merge_patch_merges_mappings_replaces_the_rest_and_deletes_by_null() -> None:
    patch = {
        "metadata": {"labels": {"tier": "front"}, "finalizers": ["x/z"]},
        "data": {"a": None, "none": None},
        "spec": {"new": {"kept": 1, "dropped": None}},
    }
    assert merge_patch(LIVE, patch) == {
        "kind": "ConfigMap",
        "metadata": {
            "name": "a",
            "labels": {"app.kubernetes.io/name": "web", "tier": "front"},
            "finalizers": ["x/z"],
        },
        "data": {"b~c": "2"},
        "spec": {"new": {"kept": 1}},
    }


@pytest.mark.parametrize(
    ("patch", "message"),
    [
        ([1], "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}"),
        (1, "error decoding patch: json: cannot unmarshal number into Go value of type map[string]interface {}"),
        (None, "Invalid JSON Patch"),
    ],
)
def test_a_merge_patch_must_be_an_object(patch: Any, message: str) -> None:
    with pytest.raises(Refused) as refused:
        merge_patch(LIVE, patch)
    assert (refused.value.code, refused.value.message) == (400, message)
