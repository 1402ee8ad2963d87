"""Patches as clients reckon them, against what the API server makes of them."""

from __future__ import annotations

from seatrial.cluster.discovery.schema import builtin_schema
from seatrial.cluster.verbs.strategic import strategic_patch
from seatrial.kinds.core import threeway
from seatrial.model.resource import Body


def pod(*containers: Body, **spec: object) -> Body:
    return {"spec": {"containers": list(containers), **spec}}


def patched(before: Body, wanted: Body, live: Body) -> Body:
    return strategic_patch(live, threeway.strategic(before, wanted, live), builtin_schema("1.34", "", "v1", "Pod"))


def test_nothing_is_sent_if_the_live_object_has_it_all() -> None:
    said = pod({"name": "web", "image": "web:1"})
    live = pod({"name": "web", "image": "web:1", "imagePullPolicy": "Always"}, restartPolicy="Always")
    assert threeway.strategic(said, said, live) == {}


def test_changed_fields_are_overwritten_and_added_ones_stay() -> None:
    said = pod({"name": "web", "image": "web:1"})
    live = pod({"name": "web", "image": "web:9"}, {"name": "proxy", "image": "proxy"})
    assert threeway.strategic(said, said, live) == {
        "spec": {
            "containers": [{"name": "web", "image": "web:1"}],
            "$setElementOrder/containers": [{"name": "web"}],
        }
    }
    assert patched(said, said, live) == pod({"name": "web", "image": "web:1"}, {"name": "proxy", "image": "proxy"})


def test_dropped_fields_are_removed() -> None:
    before = pod({"name": "web", "image": "web", "command": ["run"]}, {"name": "old", "image": "old"}, hostNetwork=True)
    wanted = pod({"name": "web", "image": "web"})
    assert threeway.strategic(before, wanted, before) == {
        "spec": {
            "hostNetwork": None,
            "containers": [{"name": "web", "command": None}, {"name": "old", "$patch": "delete"}],
        }
    }
    assert patched(before, wanted, before) == wanted


def test_a_volume_has_one_source() -> None:
    before, wanted = (
        pod(volumes=[{"name": "data", "emptyDir": {}}]),
        pod(volumes=[{"name": "data", "secret": {"x": 1}}]),
    )
    assert patched(before, wanted, before) == wanted


def test_a_list_without_a_merge_key_is_replaced() -> None:
    before, wanted = pod(tolerations=[{"key": "a"}, {"key": "b"}]), pod(tolerations=[{"key": "b"}])
    assert patched(before, wanted, before) == wanted


def test_a_merge_patch_ignores_the_live_object() -> None:
    assert threeway.merge({"spec": {"a": 1, "b": 2}}, {"spec": {"a": 1, "c": [3]}}) == {"spec": {"b": None, "c": [3]}}
    assert threeway.merge({"spec": {"a": 1}}, {"spec": {"a": 1}}) == {}


def test_an_explicit_null_is_sent_as_null() -> None:
    said = pod({"name": "web", "image": "web"}, hostname=None)
    live = pod({"name": "web", "image": "web"}, hostname="web-0")
    assert threeway.strategic(said, said, live) == {"spec": {"hostname": None}}


DNS = (
    {"containerPort": 53, "name": "dns", "protocol": "UDP"},
    {"containerPort": 53, "name": "dns-tcp", "protocol": "TCP"},
)
"""Both are of one key."""


def test_two_ports_of_one_number_stay() -> None:
    said = pod({"name": "web", "image": "web", "ports": [*DNS]})
    assert threeway.strategic(said, said, said) == {}


def test_a_second_port_of_the_same_number_is_lost() -> None:
    before, wanted = (
        pod({"name": "web", "image": "web", "ports": [DNS[0]]}),
        pod({"name": "web", "image": "web", "ports": [*DNS]}),
    )
    patch = threeway.strategic(before, wanted, before)
    assert patch["spec"]["containers"][0]["ports"] == [DNS[1], DNS[0]]
    assert patched(before, wanted, before) == before


def test_a_removed_port_removes_the_other_of_the_same_number() -> None:
    before, wanted = (
        pod({"name": "web", "image": "web", "ports": [*DNS]}),
        pod({"name": "web", "image": "web", "ports": [DNS[0]]}),
    )
    assert patched(before, wanted, before) == pod({"name": "web", "image": "web", "ports": []})


def test_only_changed_or_dropped_fields_of_a_custom_resource_are_sent() -> None:
    before = {"spec": {"size": 1, "old": True, "list": [1]}}
    wanted = {"spec": {"size": 1, "list": [1, 2], "none": None}}
    live = {"spec": {"size": 3, "old": True, "list": [1, 2], "added": True}}
    assert threeway.merge_live(before, wanted, live) == {"spec": {"old": None, "size": 1}}
    assert threeway.merge_live(wanted, wanted, {"spec": {"size": 1, "list": [1, 2]}}) == {}
