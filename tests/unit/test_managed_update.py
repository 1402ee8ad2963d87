"""managedFields after creates, updates and patches, with the results of a real API server (1.34)."""

from typing import Any

import pytest

from seatrial.cluster.discovery.schema import Schema, as_schema, builtin_schema
from seatrial.cluster.fields.managed import server_side_apply, track_update
from seatrial.cluster.verbs.patch import json_patch
from seatrial.model.resource import Body

CONFIG = builtin_schema("1.34", "", "v1", "ConfigMap")
WIDGET = as_schema({"type": "object", "properties": {"spec": {"type": "object"}}})


def track(
    old: Body | None, new: Body, manager: str = "kubectl", *, time: str = "T1", schema: Schema | None = CONFIG
) -> Body:
    return track_update(old, new, manager=manager, schema=schema, time=time)


def config(metadata: Body | None = None, **data: str) -> Body:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", **(metadata or {})}, "data": data}


def entry(manager: str, fields: Body, *, time: str = "T1", operation: str = "Update", version: str = "v1") -> Body:
    return {
        "manager": manager,
        "operation": operation,
        "apiVersion": version,
        "time": time,
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }


def entries(body: Body) -> Any:
    return body["metadata"].get("managedFields")


def test_the_creator_owns_everything_except_names() -> None:
    body = config({"namespace": "demo", "uid": "u", "generation": 1, "labels": {"app": "web"}}, a="1")
    assert entries(track(None, body)) == [
        entry(
            "kubectl",
            {"f:metadata": {"f:labels": {".": {}, "f:app": {}}}, "f:data": {".": {}, "f:a": {}}},
        )
    ]


def test_structs_that_always_exist_are_owned_only_by_their_fields() -> None:
    container = {"name": "web", "image": "nginx", "resources": {}, "ports": [{"containerPort": 80, "protocol": "TCP"}]}
    body = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d"},
        "spec": {
            "selector": {"matchLabels": {"a": "b"}},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}},
            "template": {
                "metadata": {"labels": {"a": "b"}},
                "spec": {"containers": [container], "volumes": [{"name": "v"}]},
            },
        },
    }
    created = track(None, body, schema=builtin_schema("1.34", "apps", "v1", "Deployment"))
    assert entries(created)[0]["fieldsV1"] == {
        "f:spec": {
            "f:selector": {},
            "f:strategy": {"f:type": {}, "f:rollingUpdate": {".": {}, "f:maxSurge": {}}},
            "f:template": {
                "f:metadata": {"f:labels": {".": {}, "f:a": {}}},
                "f:spec": {
                    "f:containers": {
                        'k:{"name":"web"}': {
                            ".": {},
                            "f:name": {},
                            "f:image": {},
                            "f:resources": {},
                            "f:ports": {
                                ".": {},
                                'k:{"containerPort":80,"protocol":"TCP"}': {
                                    ".": {},
                                    "f:containerPort": {},
                                    "f:protocol": {},
                                },
                            },
                        }
                    },
                    "f:volumes": {".": {}, 'k:{"name":"v"}': {".": {}, "f:name": {}}},
                },
            },
        }
    }


def test_custom_resources_have_no_implied_structs() -> None:
    body = {"apiVersion": "t.example/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"a": {"b": 1}}}
    assert entries(track(None, body, schema=WIDGET)) == [
        entry("kubectl", {"f:spec": {".": {}, "f:a": {".": {}, "f:b": {}}}}, version="t.example/v1")
    ]


def test_an_empty_mapping_in_place_of_null_is_a_change() -> None:
    body = {"apiVersion": "t.example/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": None}
    live = track(None, body, "one", schema=WIDGET)
    after = track(live, {**live, "spec": {}}, "two", schema=WIDGET)
    assert entries(after) == [entry("two", {"f:spec": {}}, version="t.example/v1")]


def test_a_status_is_owned_through_its_subresource() -> None:
    schema = builtin_schema("1.34", "apps", "v1", "Deployment")
    body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": {"replicas": 2}}
    live = track(None, body, schema=schema)
    new = {**live, "status": {"replicas": 2, "conditions": [{"type": "Available", "status": "True"}]}}
    after = track_update(live, new, manager="kcm", schema=schema, time="T2", subresource="status")
    fields: Body = {
        "f:status": {
            "f:replicas": {},
            "f:conditions": {".": {}, 'k:{"type":"Available"}': {".": {}, "f:type": {}, "f:status": {}}},
        }
    }
    assert entries(after) == [
        entry("kubectl", {"f:spec": {"f:replicas": {}}}, version="apps/v1"),
        {**entry("kcm", fields, time="T2", version="apps/v1"), "subresource": "status"},
    ]


def test_the_writer_takes_what_it_changed_from_the_others() -> None:
    live = track(None, config(a="1", b="1", c="1"), "one")
    after = track(live, {**live, "data": {"a": "2", "b": "1", "d": "1"}}, "two", time="T2")
    assert entries(after) == [
        entry("one", {"f:data": {".": {}, "f:b": {}}}),
        entry("two", {"f:data": {"f:a": {}, "f:d": {}}}, time="T2"),
    ]


def test_an_owner_without_fields_is_removed() -> None:
    live = track(None, {**config(), "data": {"a": "1"}}, "one")
    emptied = track(live, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}, "two", time="T2")
    assert entries(emptied) is None


def test_the_same_writer_keeps_one_entry_and_gets_a_new_time_only_for_a_change() -> None:
    live = track(None, config(a="1"), "one")
    more = track(live, {**live, "data": {"a": "1", "b": "2"}}, "one", time="T2")
    assert entries(more) == [entry("one", {"f:data": {".": {}, "f:a": {}, "f:b": {}}}, time="T2")]
    fewer = track(more, {**more, "data": {"a": "1"}}, "one", time="T3")
    assert entries(fewer) == [entry("one", {"f:data": {".": {}, "f:a": {}}}, time="T2")]
    assert track(fewer, fewer, "one", time="T4") == fewer


def test_another_version_has_its_own_entry() -> None:
    live = track(None, config(a="1"), "one")
    after = track(live, {**live, "apiVersion": "v2", "data": {"a": "1", "b": "1"}}, "one", time="T2")
    assert [(found["manager"], found["apiVersion"]) for found in entries(after)] == [("one", "v1"), ("one", "v2")]


def test_items_of_lists_are_tracked_by_their_names() -> None:
    live = track(None, config({"finalizers": ["x/a", "x/b"]}), "one")
    after = track(live, {**live, "metadata": {**live["metadata"], "finalizers": ["x/b", "x/c"]}}, "two", time="T2")
    assert [found["fieldsV1"]["f:metadata"] for found in entries(after)] == [
        {"f:finalizers": {".": {}, 'v:"x/b"': {}}},
        {"f:finalizers": {'v:"x/c"': {}}},
    ]


def test_entries_are_sorted_by_operation_and_time() -> None:
    live = track(None, config(a="1"), "update", time="T2")
    live = track(live, {**live, "data": {"a": "1", "b": "1"}}, "early", time="T1")
    live = server_side_apply(live, config(c="1"), manager="late", force=False, schema=CONFIG, time="T9")
    assert [(found["manager"], found["operation"]) for found in entries(live)] == [
        ("late", "Apply"),
        ("early", "Update"),
        ("update", "Update"),
    ]


@pytest.mark.parametrize("reset", [[], [{}]])
def test_a_client_can_reset_all_ownership(reset: list[Body]) -> None:
    live = track(None, config(a="1"))
    bare = track(live, {**live, "metadata": {**live["metadata"], "managedFields": reset}})
    assert entries(bare) is None
    assert entries(track(bare, {**bare, "data": {"a": "2"}})) is None


def test_an_empty_list_resets_nothing_on_a_custom_resource() -> None:
    body = {"apiVersion": "t.example/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"a": 1}}
    live = track(None, body, schema=WIDGET)
    kept = track(live, {**live, "metadata": {"name": "w", "managedFields": []}}, schema=WIDGET)
    assert entries(kept) == entries(live)
    bare = track(live, {**live, "metadata": {"name": "w", "managedFields": [{}]}}, schema=WIDGET)
    assert entries(bare) is None


def test_an_update_without_managed_fields_keeps_them() -> None:
    live = track(None, config(a="1"))
    assert entries(track(live, config(a="1"), "other", time="T2")) == entries(live)


def test_a_subresource_cannot_reset_managed_fields() -> None:
    live = track(None, config(a="1"))
    given = {**live, "metadata": {**live["metadata"], "managedFields": [{}]}}
    after = track_update(live, given, manager="other", schema=CONFIG, time="T2", subresource="status")
    assert entries(after) == entries(live)


def test_invalid_entries_are_ignored() -> None:
    live = track(None, config(a="1"))
    broken = {**entry("x", {}), "fieldsType": "FieldsV2"}
    after = track(live, {**live, "metadata": {**live["metadata"], "managedFields": [broken]}})
    assert entries(after) == entries(live)


def test_an_updater_becomes_an_applier_by_a_json_patch() -> None:
    live = track(None, config(a="1", b="1"), "kubectl-client-side-apply")
    migrated = [{**entries(live)[0], "manager": "kubectl", "operation": "Apply"}]
    patched = json_patch(live, [{"op": "replace", "path": "/metadata/managedFields", "value": migrated}])
    live = track(live, patched, "kubectl", time="T2")
    assert entries(live) == migrated
    after = server_side_apply(live, config(b="2"), manager="kubectl", force=False, schema=CONFIG, time="T3")
    assert after["data"] == {"b": "2"}
    assert entries(after) == [entry("kubectl", {"f:data": {"f:b": {}}}, time="T3", operation="Apply")]


def test_a_writer_without_a_name_is_unknown() -> None:
    assert entries(track(None, config(a="1"), ""))[0]["manager"] == "unknown"
