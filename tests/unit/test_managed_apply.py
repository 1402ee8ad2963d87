"""Server-side apply, with the results of a real API server (1.34)."""

from typing import Any

import pytest

from seatrial.cluster.discovery.schema import Schema, as_schema, builtin_schema
from seatrial.cluster.fields.managed import same_but_for_times, server_side_apply, track_update
from seatrial.cluster.refusal import Refused
from seatrial.model.resource import Body

WIDGET = as_schema(
    {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "properties": {
                    "items": {
                        "type": "array",
                        "x-kubernetes-list-type": "map",
                        "x-kubernetes-list-map-keys": ["id", "proto"],
                        "items": {
                            "type": "object",
                            "properties": {
                                "id": {"type": "integer"},
                                "proto": {"type": "string", "default": "TCP"},
                                "v": {"type": "integer"},
                            },
                        },
                    },
                    "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
                    "whole": {"type": "object", "x-kubernetes-map-type": "atomic"},
                    "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                    "texts": {"type": "object", "additionalProperties": {"type": "string"}},
                },
            }
        },
    }
)


def schema_of(body: Body) -> Schema | None:
    if body["kind"] == "Widget":
        return WIDGET
    group, _, version = body["apiVersion"].rpartition("/")
    return builtin_schema("1.34", group, version, body["kind"])


def apply(live: Body | None, body: Body, manager: str = "helm", *, force: bool = False, time: str = "T1") -> Body:
    return server_side_apply(live, body, manager=manager, force=force, schema=schema_of(body), time=time)


def update(live: Body | None, body: Body, manager: str = "kubectl", *, time: str = "T1", part: str = "") -> Body:
    return track_update(live, body, manager=manager, schema=schema_of(body), time=time, subresource=part)


def owned(body: Body) -> dict[str, Any]:
    """Fields by manager and operation."""
    entries = body["metadata"].get("managedFields", ())
    return {f"{entry['manager']} {entry['operation']}": entry["fieldsV1"] for entry in entries}


def refusal_of(live: Body | None, body: Body, manager: str = "helm") -> Refused:
    with pytest.raises(Refused) as refused:
        apply(live, body, manager)
    return refused.value


def config(metadata: Body | None = None, **data: str) -> Body:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", **(metadata or {})}, "data": data}


def deployment(*containers: Body, **spec: Any) -> Body:
    pod = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": list(containers)}}
    selector = {"matchLabels": {"app": "web"}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "demo"},
        "spec": {"selector": selector, "template": pod, **spec},
    }


def service(*ports: Body) -> Body:
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"ports": list(ports)}}


def widget(**spec: Any) -> Body:
    return {"apiVersion": "t.example/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": spec}


def test_an_apply_creates_a_missing_object() -> None:
    assert apply(None, config({"labels": {"app": "web"}}, a="1")) == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": "c",
            "labels": {"app": "web"},
            "managedFields": [
                {
                    "manager": "helm",
                    "operation": "Apply",
                    "apiVersion": "v1",
                    "time": "T1",
                    "fieldsType": "FieldsV1",
                    "fieldsV1": {"f:metadata": {"f:labels": {"f:app": {}}}, "f:data": {"f:a": {}}},
                }
            ],
        },
        "data": {"a": "1"},
    }


def test_list_items_are_owned_by_their_keys() -> None:
    web = {
        "name": "web",
        "image": "nginx",
        "command": ["nginx", "-g"],
        "env": [{"name": "A", "value": "1"}],
        "ports": [{"containerPort": 80}],
        "resources": {},
    }
    assert owned(apply(None, deployment(web, replicas=2)))["helm Apply"] == {
        "f:spec": {
            "f:replicas": {},
            "f:selector": {},
            "f:template": {
                "f:metadata": {"f:labels": {"f:app": {}}},
                "f:spec": {
                    "f:containers": {
                        'k:{"name":"web"}': {
                            ".": {},
                            "f:name": {},
                            "f:image": {},
                            "f:command": {},
                            "f:env": {'k:{"name":"A"}': {".": {}, "f:name": {}, "f:value": {}}},
                            "f:ports": {'k:{"containerPort":80,"protocol":"TCP"}': {".": {}, "f:containerPort": {}}},
                            "f:resources": {},
                        }
                    }
                },
            },
        }
    }


def test_a_repeated_apply_changes_nothing() -> None:
    body = deployment({"name": "web", "image": "nginx", "ports": [{"containerPort": 80}]}, replicas=2)
    live = apply(None, body)
    assert apply(live, body, time="T2") is live


def test_a_null_timestamp_in_the_manifest_changes_nothing() -> None:
    live = apply(None, config(a="1"))
    live = {**live, "metadata": {**live["metadata"], "creationTimestamp": "T0"}}
    assert apply(live, config({"creationTimestamp": None}, a="1"), time="T2") is live


def test_a_change_updates_the_time() -> None:
    live = apply(None, config(a="1", b="1"))
    after = apply(live, config(a="2", b="1"), time="T2")
    assert after["data"] == {"a": "2", "b": "1"}
    assert [entry["time"] for entry in after["metadata"]["managedFields"]] == ["T2"]


def test_fields_that_are_no_longer_applied_are_removed() -> None:
    body = config({"labels": {"app": "web"}, "annotations": {"note": "x"}}, a="1", b="2")
    after = apply(apply(None, body), config({"labels": {"app": "web"}}, a="1"))
    assert after["data"] == {"a": "1"}
    assert "annotations" not in after["metadata"]
    assert owned(after) == {"helm Apply": {"f:metadata": {"f:labels": {"f:app": {}}}, "f:data": {"f:a": {}}}}


def test_an_item_that_is_no_longer_applied_is_removed_with_its_defaults() -> None:
    live = apply(None, deployment({"name": "web", "image": "nginx"}, {"name": "log", "image": "fluent"}))
    containers = [{**item, "imagePullPolicy": "Always"} for item in live["spec"]["template"]["spec"]["containers"]]
    template = live["spec"]["template"]
    defaulted = {**live["spec"], "template": {**template, "spec": {**template["spec"], "containers": containers}}}
    after = apply({**live, "spec": defaulted}, deployment({"name": "web", "image": "nginx"}))
    assert after["spec"]["template"]["spec"] == {
        "containers": [{"name": "web", "image": "nginx", "imagePullPolicy": "Always"}]
    }


def test_a_field_with_another_owner_remains() -> None:
    live = apply(apply(None, config(a="1", b="1"), "helm"), config(b="1"), "argo")
    after = apply(live, config(a="1"), "helm")
    assert after["data"] == {"a": "1", "b": "1"}
    assert owned(after) == {"argo Apply": {"f:data": {"f:b": {}}}, "helm Apply": {"f:data": {"f:a": {}}}}


def test_equal_values_are_shared_and_the_new_owner_has_no_time() -> None:
    live = apply(None, config(a="1"), "helm")
    after = apply(live, config(a="1"), "argo", time="T2")
    assert [(entry["manager"], entry.get("time")) for entry in after["metadata"]["managedFields"]] == [
        ("argo", None),
        ("helm", "T1"),
    ]
    assert owned(after) == {"argo Apply": {"f:data": {"f:a": {}}}, "helm Apply": {"f:data": {"f:a": {}}}}


def test_fields_that_were_not_applied_are_kept() -> None:
    live = update(None, config(a="1", b="1"))
    after = apply(live, config(c="3"))
    assert after["data"] == {"a": "1", "b": "1", "c": "3"}


def test_one_conflict_names_manager_and_field() -> None:
    live = update(None, deployment({"name": "web", "image": "nginx"}, replicas=2))
    refused = refusal_of(live, deployment({"name": "web", "image": "nginx"}, replicas=3))
    assert refused.status() == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": 'Apply failed with 1 conflict: conflict with "kubectl" using apps/v1: .spec.replicas',
        "reason": "Conflict",
        "details": {
            "causes": [
                {
                    "reason": "FieldManagerConflict",
                    "message": 'conflict with "kubectl" using apps/v1',
                    "field": ".spec.replicas",
                }
            ]
        },
        "code": 409,
    }


def test_several_conflicts_are_listed_by_manager() -> None:
    live = apply(update(None, config(a="1", b="1")), config(a="1"), "argo")
    refused = refusal_of(live, config(a="2", b="2"))
    assert refused.message == (
        'Apply failed with 3 conflicts: conflicts with "argo":\n'
        "- .data.a\n"
        'conflicts with "kubectl" using v1:\n'
        "- .data.a\n"
        "- .data.b"
    )
    assert [cause["field"] for cause in refused.details["causes"]] == [".data.a", ".data.a", ".data.b"]


def test_conflicts_list_fields_before_nested_ones() -> None:
    ports = [{"containerPort": 443, "name": "tls"}, {"containerPort": 80, "name": "http"}]
    live = update(None, deployment({"name": "web", "image": "nginx", "ports": ports}))
    ports = [{"containerPort": 443, "name": "s"}, {"containerPort": 80, "name": "h"}]
    refused = refusal_of(live, deployment({"name": "web", "image": "new", "ports": ports}))
    assert refused.message == (
        'Apply failed with 3 conflicts: conflicts with "kubectl" using apps/v1:\n'
        '- .spec.template.spec.containers[name="web"].image\n'
        '- .spec.template.spec.containers[name="web"].ports[containerPort=80,protocol="TCP"].name\n'
        '- .spec.template.spec.containers[name="web"].ports[containerPort=443,protocol="TCP"].name'
    )


def test_a_conflict_names_the_subresource() -> None:
    body = deployment({"name": "web", "image": "nginx"}, replicas=2)
    live = apply(None, body)
    scaled = update(live, {**live, "spec": {**live["spec"], "replicas": 5}}, "hpa", part="scale")
    assert refusal_of(scaled, body).message == (
        'Apply failed with 1 conflict: conflict with "hpa" with subresource "scale" using apps/v1: .spec.replicas'
    )


def test_force_takes_ownership() -> None:
    live = update(None, config(a="1", b="1"))
    after = apply(live, config(a="2"), force=True)
    assert after["data"] == {"a": "2", "b": "1"}
    assert owned(after) == {"helm Apply": {"f:data": {"f:a": {}}}, "kubectl Update": {"f:data": {".": {}, "f:b": {}}}}


def test_an_emptied_mapping_remains_for_its_other_owner() -> None:
    live = apply(update(None, config(a="1")), config(a="2"), force=True)
    without_data = {key: value for key, value in config().items() if key != "data"}
    after = apply(live, without_data)
    assert after["data"] == {}
    assert owned(after) == {"kubectl Update": {"f:data": {}}}


def test_applied_items_keep_their_order_and_live_ones_their_position() -> None:
    def names(body: Body) -> list[str]:
        return [item["name"] for item in body["spec"]["template"]["spec"]["containers"]]

    live = update(None, deployment(*({"name": name, "image": "x"} for name in "abcd")))
    applied = deployment(*({"name": name, "image": "x"} for name in "zcxa"))
    assert names(apply(live, applied)) == ["b", "z", "c", "d", "x", "a"]


def test_ports_without_a_protocol_are_tcp() -> None:
    live = apply(None, service({"port": 53, "name": "tcp"}, {"port": 53, "name": "udp", "protocol": "UDP"}))
    after = apply(live, service({"port": 53, "protocol": "TCP", "name": "new"}))
    assert after["spec"]["ports"] == [{"port": 53, "name": "new", "protocol": "TCP"}]


def test_custom_resources_merge_by_their_schema() -> None:
    one = widget(
        items=[{"id": 1, "v": 1}], tags=["a"], whole={"x": 1}, free={"deep": {"x": 1}, "list": [1]}, texts={"x": "1"}
    )
    live = apply(None, one, "one")
    two = widget(items=[{"id": 1, "proto": "UDP", "v": 2}, {"id": 2}], tags=["b"], free={"deep": {"y": 1}})
    after = apply(live, two, "two")
    assert after["spec"] == {
        "items": [{"id": 1, "v": 1}, {"id": 1, "proto": "UDP", "v": 2}, {"id": 2}],
        "tags": ["a", "b"],
        "whole": {"x": 1},
        "free": {"deep": {"x": 1, "y": 1}, "list": [1]},
        "texts": {"x": "1"},
    }
    assert owned(after)["one Apply"] == {
        "f:spec": {
            "f:items": {'k:{"id":1,"proto":"TCP"}': {".": {}, "f:id": {}, "f:v": {}}},
            "f:tags": {'v:"a"': {}},
            "f:whole": {},
            "f:free": {"f:deep": {".": {}, "f:x": {}}, "f:list": {}},
            "f:texts": {"f:x": {}},
        }
    }


def test_without_a_schema_mappings_are_granular_and_lists_atomic() -> None:
    body = {
        "apiVersion": "x/v1",
        "kind": "Any",
        "metadata": {"name": "a", "finalizers": ["x/a"]},
        "spec": {"a": {"b": 1}, "l": [{"c": 1}]},
    }
    after = server_side_apply(None, body, manager="helm", force=False, schema=None, time="T1")
    assert owned(after)["helm Apply"] == {
        "f:metadata": {"f:finalizers": {'v:"x/a"': {}}},
        "f:spec": {".": {}, "f:a": {".": {}, "f:b": {}}, "f:l": {}},
    }


def test_fields_from_before_the_first_apply_have_an_owner() -> None:
    live = config(a="1", b="1")
    assert refusal_of(live, config(a="2")).message == (
        'Apply failed with 1 conflict: conflict with "before-first-apply" using v1: .data.a'
    )
    assert owned(apply(live, config(a="1"))) == {
        "helm Apply": {"f:data": {"f:a": {}}},
        "before-first-apply Update": {"f:data": {".": {}, "f:a": {}, "f:b": {}}},
    }
    nothing = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}
    assert owned(apply(live, nothing)) == {"before-first-apply Update": {"f:data": {".": {}, "f:a": {}, "f:b": {}}}}


def test_duplicate_items_remain_until_their_name_is_applied() -> None:
    def env(body: Body) -> list[tuple[str, str]]:
        container = body["spec"]["template"]["spec"]["containers"][0]
        return [(item["name"], item["value"]) for item in container["env"]]

    def with_env(*pairs: tuple[str, str]) -> Body:
        return deployment({"name": "web", "env": [{"name": name, "value": value} for name, value in pairs]})

    live = update(None, with_env(("A", "1"), ("B", "1"), ("A", "2")))
    added = apply(live, with_env(("C", "1")))
    assert env(added) == [("A", "1"), ("B", "1"), ("A", "2"), ("C", "1")]
    assert refusal_of(live, with_env(("A", "3"))).message == (
        'Apply failed with 1 conflict: conflict with "kubectl" using apps/v1: '
        '.spec.template.spec.containers[name="web"].env[name="A"]'
    )
    assert env(apply(live, with_env(("A", "3")), force=True)) == [("A", "3"), ("B", "1")]


def test_nulls_are_decoded_as_in_go() -> None:
    body = {**config(), "data": {"a": "1", "q": None}, "binaryData": None}
    after = apply(None, body)
    assert after["data"] == {"a": "1", "q": ""}
    assert "binaryData" not in after
    assert owned(after) == {"helm Apply": {"f:data": {"f:a": {}, "f:q": {}}, "f:binaryData": {}}}


def test_states_that_differ_only_in_times_are_equal() -> None:
    one, other = apply(None, config(a="1"), time="T1"), apply(None, config(a="1"), time="T2")
    assert one != other
    assert same_but_for_times(one, other)
    assert not same_but_for_times(one, apply(None, config(a="2"), time="T1"))
    assert not same_but_for_times(one, apply(None, config(a="1"), "argo", time="T1"))


LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def test_kubectl_has_no_conflict_with_its_client_side_apply() -> None:
    text = '{"apiVersion":"v1","data":{"a":"1","b":"1"},"kind":"ConfigMap","metadata":{"name":"c"}}\n'
    live = update(None, config({"annotations": {LAST_APPLIED: text}}, a="1", b="1"), "kubectl-client-side-apply")
    edited = update(live, {**live, "data": {"a": "1", "b": "2"}}, "editor", time="T2")
    assert refusal_of(edited, config(a="9", b="9"), "kubectl").message == (
        'Apply failed with 1 conflict: conflict with "editor" using v1: .data.b'
    )
    after = apply(edited, config(a="9", b="2"), "kubectl")
    assert after["data"] == {"a": "9", "b": "2"}
    assert after["metadata"]["annotations"] == {
        LAST_APPLIED: '{"apiVersion":"v1","data":{"a":"9","b":"2"},"kind":"ConfigMap","metadata":{"name":"c"}}\n'
    }


def test_other_managers_do_conflict() -> None:
    text = '{"apiVersion":"v1","data":{"a":"1"},"kind":"ConfigMap","metadata":{"name":"c"}}\n'
    live = update(None, config({"annotations": {LAST_APPLIED: text}}, a="1"), "kubectl-client-side-apply")
    assert refusal_of(live, config(a="9"), "helm").message == (
        'Apply failed with 1 conflict: conflict with "kubectl-client-side-apply" using v1: .data.a'
    )


def test_the_applied_object_may_not_have_managed_fields() -> None:
    refused = refusal_of(None, config({"managedFields": []}, a="1"))
    assert (refused.code, refused.reason, refused.message) == (
        400,
        "BadRequest",
        "metadata.managedFields must be nil",
    )
