"""Strategic merge patches, with the results of a real API server (1.34)."""

from typing import Any

import pytest

from seatrial.cluster.discovery.schema import as_schema, builtin_schema
from seatrial.cluster.refusal import Refused
from seatrial.cluster.verbs.patch import strategic_patch
from seatrial.model.resource import Body


def pod(**spec: Any) -> Body:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}


def patched(live: Body, **spec: Any) -> Body:
    result = strategic_patch(live, {"spec": spec}, builtin_schema("1.34", "", "v1", "Pod"))
    found: Body = result["spec"]
    return found


def refusal_of(live: Body, **spec: Any) -> tuple[int, str]:
    with pytest.raises(Refused) as refused:
        patched(live, **spec)
    return refused.value.code, refused.value.message


TWO = pod(
    containers=[
        {"name": "web", "image": "nginx", "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]},
        {"name": "log", "image": "fluent"},
    ]
)


def test_containers_and_their_env_merge_by_name() -> None:
    web = {"name": "web", "env": [{"name": "B", "value": "9"}, {"name": "C", "value": "3"}]}
    assert patched(TWO, containers=[web]) == {
        "containers": [
            {
                "name": "web",
                "image": "nginx",
                "env": [
                    {"name": "A", "value": "1"},
                    {"name": "B", "value": "9"},
                    {"name": "C", "value": "3"},
                ],
            },
            {"name": "log", "image": "fluent"},
        ]
    }


def test_a_new_item_precedes_live_items() -> None:
    names = [container["name"] for container in patched(TWO, containers=[{"name": "new", "image": "x"}])["containers"]]
    assert names == ["new", "web", "log"]


def test_a_delete_directive_removes_an_item() -> None:
    assert patched(TWO, containers=[{"name": "web", "$patch": "delete"}]) == {
        "containers": [{"name": "log", "image": "fluent"}]
    }


def test_a_replace_directive_replaces_the_whole_list() -> None:
    assert patched(TWO, containers=[{"name": "new", "image": "x"}, {"$patch": "replace"}]) == {
        "containers": [{"name": "new", "image": "x"}]
    }


def test_set_element_order() -> None:
    order = [{"name": "log"}, {"name": "web"}]
    assert patched(TWO, **{"$setElementOrder/containers": order}) == {
        "containers": [TWO["spec"]["containers"][1], TWO["spec"]["containers"][0]]
    }


def test_a_new_item_replaces_a_deleted_one_in_the_order() -> None:
    live = pod(containers=[{"name": name, "image": "x"} for name in ("m", "b", "z", "a")])
    result = patched(
        live,
        **{
            "containers": [{"name": "q", "image": "i"}, {"name": "a", "$patch": "delete"}],
            "$setElementOrder/containers": [{"name": "q"}, {"name": "m"}],
        },
    )
    assert [container["name"] for container in result["containers"]] == ["b", "z", "q", "m"]


def test_ports_merge_by_number() -> None:
    live = pod(containers=[{"name": "web", "ports": [{"containerPort": 53, "protocol": "UDP"}]}])
    result = patched(live, containers=[{"name": "web", "ports": [{"containerPort": 53, "name": "dns"}]}])
    assert result["containers"][0]["ports"] == [{"containerPort": 53, "protocol": "UDP", "name": "dns"}]


def test_null_deletes_a_field_and_is_never_stored() -> None:
    live = pod(nodeSelector={"a": "1", "b": "2"}, priority=1)
    assert patched(live, nodeSelector={"a": None}, priority=None, affinity={"podAffinity": None}) == {
        "nodeSelector": {"b": "2"},
        "affinity": {},
    }


def test_retain_keys() -> None:
    live = pod(volumes=[{"name": "v", "emptyDir": {}}])
    volume = {"name": "v", "secret": {"secretName": "s"}, "$retainKeys": ["name", "secret"]}
    assert patched(live, volumes=[volume]) == {"volumes": [{"name": "v", "secret": {"secretName": "s"}}]}


def test_a_mapping_can_be_replaced_or_emptied() -> None:
    live = pod(nodeSelector={"a": "1"})
    assert patched(live, nodeSelector={"b": "2", "$patch": "replace"}) == {"nodeSelector": {"b": "2"}}
    assert patched(live, nodeSelector={"$patch": "delete"}) == {"nodeSelector": {}}


def test_lists_without_a_merge_key_are_replaced() -> None:
    live = pod(tolerations=[{"key": "a"}])
    assert patched(live, tolerations=[{"key": "b"}]) == {"tolerations": [{"key": "b"}]}


def test_finalizers_merge_as_a_set() -> None:
    schema = builtin_schema("1.34", "", "v1", "Pod")
    live = {"metadata": {"finalizers": ["x/a", "x/b"]}}
    more = strategic_patch(live, {"metadata": {"finalizers": ["x/c", "x/a"]}}, schema)
    assert more == {"metadata": {"finalizers": ["x/c", "x/a", "x/b"]}}
    fewer = strategic_patch(more, {"metadata": {"$deleteFromPrimitiveList/finalizers": ["x/a"]}}, schema)
    assert fewer == {"metadata": {"finalizers": ["x/c", "x/b"]}}


def test_the_live_object_is_not_changed() -> None:
    before = repr(TWO)
    result = patched(TWO, containers=[{"name": "web", "image": "new"}])
    assert repr(TWO) == before
    assert result["containers"][1] is TWO["spec"]["containers"][1]


def test_an_item_without_its_merge_key_is_refused() -> None:
    assert refusal_of(TWO, containers=[{"image": "x"}]) == (
        500,
        "map: map[image:x] does not contain declared merge key: name",
    )


def test_items_must_be_of_one_type() -> None:
    live = pod(containers=[{"name": "web"}])
    assert refusal_of(live, containers=["web"]) == (
        500,
        "list element types are not identical: [[map[name:web]] [web]]",
    )


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"nodeSelector": {"$patch": "merge"}}, (500, "unknown patch type: merge in map: map[$patch:merge]")),
        (
            {"containers": [{"name": "web", "$patch": "merge"}]},
            (500, "merging lists cannot yet be specified in the patch"),
        ),
        (
            {"containers": [{"name": "web", "$patch": "drop"}]},
            (500, "unknown patch type: drop in map: map[$patch:drop name:web]"),
        ),
        ({"$retainKeys": ["a"], "hostname": "x"}, (400, "invalid patch format of retainKeys")),
        ({"$setElementOrder": ["a"]}, (400, "invalid patch format of setElementOrder list")),
        ({"$deleteFromPrimitiveList": ["a"]}, (400, "invalid patch format of primitive list")),
        ({"$setElementOrder/containers": "a"}, (500, "expected a []interface {}, but received a string")),
        (
            {"$setElementOrder/containers": [{"name": "web"}], "containers": [{"name": "log"}]},
            (
                500,
                "The order in patch list:\n[map[name:log]]\n doesn't match $setElementOrder list:\n[map[name:web]]\n",
            ),
        ),
        (
            {"$setElementOrder/initContainers": [], "initContainers": []},
            (500, "no elements in any of the given slices"),
        ),
    ],
)
def test_invalid_directives_are_refused(spec: Body, expected: tuple[int, str]) -> None:
    assert refusal_of(pod(nodeSelector={"a": "1"}, containers=[{"name": "web"}]), **spec) == expected


def test_a_strategic_patch_must_be_an_object() -> None:
    schema = builtin_schema("1.34", "", "v1", "Pod")
    assert strategic_patch(TWO, None, schema) is TWO
    with pytest.raises(Refused) as refused:
        strategic_patch(TWO, [1], schema)
    assert (refused.value.code, refused.value.message) == (
        400,
        "json: cannot unmarshal array into Go value of type map[string]interface {}",
    )


@pytest.mark.parametrize("schema", [None, as_schema({"type": "object"})])
def test_custom_resources_do_not_support_strategic_patches(schema: Any) -> None:
    with pytest.raises(Refused) as refused:
        strategic_patch({"kind": "Widget"}, {"spec": {}}, schema)
    assert (refused.value.code, refused.value.reason, refused.value.message) == (
        415,
        "UnsupportedMediaType",
        "the body of the request was in an unknown format - accepted media types include: "
        "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
    )
