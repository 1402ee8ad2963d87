"""The API's OpenAPI documents."""

import json
from typing import Any

from seatrial.cluster.discovery.openapi import OpenAPI
from seatrial.cluster.discovery.schema import Schema, as_schema
from seatrial.cluster.discovery.served import Discovery
from seatrial.kinds.tables.catalogue import ServedKind

WIDGET = ServedKind("example.com", "v1", "Widget", "widgets", "widget", True, list_kind="WidgetList")


def no_custom(kind: ServedKind) -> Schema | None:
    return None


def document(openapi: OpenAPI, path: str) -> Any:
    found = openapi.document(path)
    assert found is not None
    return json.loads(found)


def test_the_index_lists_every_group_version_with_its_hash() -> None:
    discovery = Discovery("1.34")
    paths = document(OpenAPI(discovery, no_custom), "/openapi/v3")["paths"]
    served = [f"apis/{group}/{version}" if group else f"api/{version}" for group, version in discovery.group_versions()]
    assert list(paths) == served
    start, _, content_hash = paths["apis/apps/v1"]["serverRelativeURL"].partition("?hash=")
    assert start == "/openapi/v3/apis/apps/v1"
    assert len(content_hash) == 32


def test_a_patch_has_its_kind_and_field_validation() -> None:
    paths = document(OpenAPI(Discovery("1.34"), no_custom), "/openapi/v3/apis/apps/v1")["paths"]
    patch = paths["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["patch"]
    assert patch["x-kubernetes-group-version-kind"] == {"group": "apps", "version": "v1", "kind": "Deployment"}
    assert [(p["name"], p["in"]) for p in patch["parameters"]] == [
        ("dryRun", "query"),
        ("fieldManager", "query"),
        ("fieldValidation", "query"),
        ("force", "query"),
    ]


def test_reviews_can_only_be_created() -> None:
    paths = document(OpenAPI(Discovery("1.34"), no_custom), "/openapi/v3/apis/authentication.k8s.io/v1")["paths"]
    assert {path: sorted(operations) for path, operations in paths.items()} == {
        "/apis/authentication.k8s.io/v1/selfsubjectreviews": ["parameters", "post"],
        "/apis/authentication.k8s.io/v1/tokenreviews": ["parameters", "post"],
    }


def test_schemas_contain_exactly_what_is_referenced() -> None:
    schemas = document(OpenAPI(Discovery("1.34"), no_custom), "/openapi/v3/apis/apps/v1")["components"]["schemas"]
    text = json.dumps(schemas)
    assert "$defs" not in text
    assert all(f"#/components/schemas/{name}" in text for name in schemas if ".apps.v1." not in name)
    assert schemas["io.k8s.api.apps.v1.Deployment"]["properties"]["spec"]["allOf"] == [
        {"$ref": "#/components/schemas/io.k8s.api.apps.v1.DeploymentSpec"}
    ]
    assert schemas["io.k8s.api.apps.v1.DeploymentSpec"]["properties"]["replicas"]["type"] == "integer"
    assert "io.k8s.api.batch.v1.Job" not in schemas


def test_a_property_named_ref_is_not_a_reference() -> None:
    found = document(OpenAPI(Discovery("1.34"), no_custom), "/openapi/v3/apis/apiextensions.k8s.io/v1")
    props = found["components"]["schemas"]["io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"]
    assert props["properties"]["$ref"] == {"type": "string"}


def test_a_custom_kind_has_its_schema() -> None:
    schema = as_schema({"type": "object", "properties": {"spec": {"type": "object"}}})
    discovery = Discovery("1.34")
    discovery.add([WIDGET])
    openapi = OpenAPI(discovery, lambda kind: schema if kind == WIDGET else None)
    first = document(openapi, "/openapi/v3/apis/example.com/v1")
    assert first["components"]["schemas"]["com.example.v1.Widget"] == {
        "type": "object",
        "properties": {
            "spec": {"type": "object"},
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"allOf": [{"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}]},
        },
        "x-kubernetes-group-version-kind": [{"group": "example.com", "version": "v1", "kind": "Widget"}],
    }
    index = openapi.index()
    schema = as_schema({"type": "object", "properties": {"spec": {"type": "object", "description": "New."}}})
    second = document(openapi, "/openapi/v3/apis/example.com/v1")
    assert second["components"]["schemas"]["com.example.v1.Widget"]["properties"]["spec"]["description"] == "New."
    assert openapi.index() != index


def test_without_schemas_a_document_has_only_the_patch_of_every_kind() -> None:
    discovery = Discovery("1.34")
    full, lean = (OpenAPI(discovery, no_custom, with_schemas=wanted) for wanted in (True, False))
    patches = [path["patch"] for path in document(lean, "/openapi/v3/apis/apps/v1")["paths"].values()]
    whole = document(full, "/openapi/v3/apis/apps/v1")["paths"].values()
    assert all(patch in [path.get("patch") for path in whole] for patch in patches)
    kinds = [patch["x-kubernetes-group-version-kind"]["kind"] for patch in patches]
    assert kinds == ["ControllerRevision", "DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"]
