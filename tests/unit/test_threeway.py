"""Patches as clients reckon them, against what the API server makes of them."""

from __future__ import annotations

from seatrial.cluster.schema import builtin_schema
from seatrial.cluster.strategic import strategic_patch
from seatrial.engines import threeway
from seatrial.resource import Body


def pod(*containers: Body, **spec: object) -> Body:
    return {"spec": {"containers": list(containers), **spec}}


def patched(before: Body, wanted: Body, live: Body) -> Body:
    return strategic_patch(live, threeway.strategic(before, wanted, live), builtin_schema("1.34", "", "v1", "Pod"))


def test_nothing_is_sent_where_the_live_object_says_it_all() -> None:
    said = pod({"name": "web", "image": "web:1"})
    live = pod({"name": "web", "image": "web:1", "imagePullPolicy": "Always"}, restartPolicy="Always")
    assert threeway.strategic(said, said, live) == {}


def test_what_someone_changed_is_written_over_and_what_someone_added_stays() -> None:
    said = pod({"name": "web", "image": "web:1"})
    live = pod({"name": "web", "image": "web:9"}, {"name": "proxy", "image": "proxy"})
    assert threeway.strategic(said, said, live) == {
        "spec": {
            "containers": [{"name": "web", "image": "web:1"}],
            "$setElementOrder/containers": [{"name": "web"}],
        }
    }
    assert patched(said, said, live) == pod({"name": "web", "image": "web:1"}, {"name": "proxy", "image": "proxy"})


def test_what_is_no_longer_said_goes() -> None:
    before = pod({"name": "web", "image": "web", "command": ["run"]}, {"name": "old", "image": "old"}, hostNetwork=True)
    wanted = pod({"name": "web", "image": "web"})
    assert threeway.strategic(before, wanted, before) == {
        "spec": {
            "hostNetwork": None,
            "containers": [{"name": "web", "command": None}, {"name": "old", "$patch": "delete"}],
        }
    }
    assert patched(before, wanted, before) == wanted


def test_a_volume_is_of_one_sort() -> None:
    before, wanted = (
        pod(volumes=[{"name": "data", "emptyDir": {}}]),
        pod(volumes=[{"name": "data", "secret": {"x": 1}}]),
    )
    assert patched(before, wanted, before) == wanted


def test_a_list_without_names_is_replaced_whole() -> None:
    before, wanted = pod(tolerations=[{"key": "a"}, {"key": "b"}]), pod(tolerations=[{"key": "b"}])
    assert patched(before, wanted, before) == wanted


def test_a_merge_patch_does_not_look_at_the_live_object() -> None:
    assert threeway.merge({"spec": {"a": 1, "b": 2}}, {"spec": {"a": 1, "c": [3]}}) == {"spec": {"b": None, "c": [3]}}
    assert threeway.merge({"spec": {"a": 1}}, {"spec": {"a": 1}}) == {}
