"""Custom kinds: what a CRD adds to the API, its schema, and its deletion. On both arms."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from apiclient import Reply
from arms import Here

from seatrial.model.resource import Body

SPEC: Body = {
    "type": "object",
    "required": ["size"],
    "properties": {
        "size": {"type": "integer", "minimum": 1, "maximum": 10},
        "color": {"type": "string", "enum": ["red", "blue"], "default": "red"},
        "parts": {"type": "array", "items": {"type": "string"}},
        "replicas": {"type": "integer"},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    },
}
STATUS: Body = {
    "type": "object",
    "properties": {"ok": {"type": "boolean"}, "replicas": {"type": "integer"}, "selector": {"type": "string"}},
}
SCALE = {
    "specReplicasPath": ".spec.replicas",
    "statusReplicasPath": ".status.replicas",
    "labelSelectorPath": ".status.selector",
}


def version(name: str, *, served: bool = True, storage: bool = False, **more: Any) -> Body:
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": SPEC, "status": STATUS}}}
    return {"name": name, "served": served, "storage": storage, "schema": schema, **more}


def definition(group: str, plural: str = "widgets", kind: str = "Widget", **spec: Any) -> Body:
    names = {"kind": kind, "plural": plural, "shortNames": ["wd"], "categories": ["all"]}
    versions = [
        version("v1", storage=True, subresources={"status": {}, "scale": SCALE}),
        version("v1beta1"),
        version("v1alpha1", served=False),
    ]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": versions, **spec},
    }


class Widgets:
    """A custom kind for one test."""

    def __init__(self, here: Here) -> None:
        self.here = here
        self.group = f"{here.name}.example.com"
        self.definition = f"widgets.{self.group}"

    def at(self, name: str = "", version: str = "v1") -> str:
        path = f"/apis/{self.group}/{version}/namespaces/{self.here.name}/widgets"
        return f"{path}/{name}" if name else path

    def body(self, name: str = "blue", **spec: Any) -> Body:
        made = {"apiVersion": f"{self.group}/v1", "kind": "Widget", "metadata": {"name": name}}
        return {**made, "spec": {"size": 1, **spec}}

    def create(self, name: str = "blue", **spec: Any) -> Reply:
        return self.here.api.post(self.at(), self.body(name, **spec))

    def get(self, name: str, version: str = "v1") -> Reply:
        return self.here.api.get(self.at(name, version))

    def patch(self, name: str, body: Body) -> Reply:
        return self.here.api.patch(self.at(name), body)

    def defined(self) -> Reply:
        return self.here.get("CustomResourceDefinition", self.definition)


@pytest.fixture
def widgets(here: Here) -> Iterator[Widgets]:
    found = Widgets(here)
    assert here.create(definition(found.group)).code == 201
    # A CRD is Established before every path is served.
    assert here.soon(lambda: here.api.get(found.at()).code == 200)
    yield found
    here.delete("CustomResourceDefinition", found.definition)


def test_a_crd_is_established_once_its_names_are_accepted(widgets: Widgets) -> None:
    status = widgets.defined().body["status"]
    seen = {found["type"]: f"{found['status']} {found['reason']}: {found['message']}" for found in status["conditions"]}
    assert seen == {
        "NamesAccepted": "True NoConflicts: no conflicts found",
        "Established": "True InitialNamesAccepted: the initial names have been accepted",
    }
    assert status["storedVersions"] == ["v1"]
    assert status["acceptedNames"] == {
        "plural": "widgets",
        "singular": "widget",
        "shortNames": ["wd"],
        "kind": "Widget",
        "listKind": "WidgetList",
        "categories": ["all"],
    }


def test_discovery_shows_the_kind_in_every_served_version(widgets: Widgets) -> None:
    api, group = widgets.here.api, widgets.group
    assert [found["version"] for found in api.get(f"/apis/{group}").body["versions"]] == ["v1", "v1beta1"]
    resources = api.get(f"/apis/{group}/v1").body["resources"]
    assert [found["name"] for found in resources] == ["widgets", "widgets/status", "widgets/scale"]
    assert resources[0]["shortNames"] == ["wd"]
    assert [found["name"] for found in api.get(f"/apis/{group}/v1beta1").body["resources"]] == ["widgets"]
    assert api.get(f"/apis/{group}/v1alpha1").code == 404


def test_an_object_differs_between_versions_only_in_its_version(widgets: Widgets) -> None:
    made = widgets.create().body
    shown = widgets.get("blue", "v1beta1").body
    assert shown == {**made, "apiVersion": f"{widgets.group}/v1beta1", "metadata": shown["metadata"]}
    assert widgets.get("blue", "v1alpha1").code == 404
    assert widgets.here.api.get(widgets.at("blue/status", "v1beta1")).code == 404


def test_defaults_are_set_and_unknown_fields_are_pruned_with_a_warning(widgets: Widgets) -> None:
    body = {**widgets.body(shape="round", free={"any": {"thing": 1}}), "top": 1}
    made = widgets.here.api.post(widgets.at(), body)
    assert made.body["spec"] == {"size": 1, "color": "red", "free": {"any": {"thing": 1}}}
    assert "top" not in made.body
    assert made.warnings == ('unknown field "spec.shape"', 'unknown field "top"')
    assert widgets.here.api.post(widgets.at(), body, fieldValidation="Strict").refusal == (
        '400 BadRequest: Widget in version "v1" cannot be handled as a Widget: strict decoding error: unknown field '
        '"spec.shape", unknown field "top"'
    )


BAD_SPECS: dict[str, tuple[Body, str]] = {
    "too much": ({"size": 99}, "spec.size: Invalid value: 99: spec.size in body should be less than or equal to 10"),
    "too little": ({"size": 0}, "spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1"),
    "a text": (
        {"size": "big"},
        'spec.size: Invalid value: "string": spec.size in body must be of type integer: "string"',
    ),
    "none of the list": ({"color": "green"}, 'spec.color: Unsupported value: "green": supported values: "red", "blue"'),
    "a wrong item": (
        {"parts": ["one", 2]},
        'spec.parts[1]: Invalid value: "integer": spec.parts[1] in body must be of type string: "integer"',
    ),
    "nothing": ({"size": None}, "spec.size: Required value"),
}


@pytest.mark.parametrize("given", BAD_SPECS)
def test_an_object_is_validated_against_the_schema(widgets: Widgets, given: str) -> None:
    spec, words = BAD_SPECS[given]
    refused = widgets.create(**spec).refusal
    assert refused == f'422 Invalid: Widget.{widgets.group} "blue" is invalid: {words}'
    widgets.create()
    changed = widgets.patch("blue", {"spec": spec}).refusal
    assert changed == f'422 Invalid: Widget.{widgets.group} "blue" is invalid: {words}'


def test_the_status_has_its_own_subresource(widgets: Widgets) -> None:
    widgets.create()
    assert "status" not in widgets.patch("blue", {"status": {"ok": True}}).body
    changed = widgets.patch("blue/status", {"status": {"ok": True, "more": 1}, "spec": {"size": 9}})
    assert (changed.body["status"], changed.body["spec"]["size"]) == ({"ok": True}, 1)
    assert changed.warnings == ('unknown field "status.more"',)
    assert changed.body["metadata"]["generation"] == 1


def test_scale_uses_the_paths_of_the_crd(widgets: Widgets) -> None:
    widgets.create()
    path = widgets.at("blue/scale")
    assert widgets.here.api.get(path).refusal == (
        '500 InternalError: Internal error occurred: the spec replicas field ".spec.replicas" does not exist'
    )
    assert widgets.here.api.patch(path, {"spec": {"replicas": 3}}).body["spec"] == {"replicas": 3}
    assert widgets.get("blue").body["spec"]["replicas"] == 3
    widgets.patch("blue/status", {"status": {"replicas": 2, "selector": "app=blue"}})
    assert widgets.here.api.get(path).body["status"] == {"replicas": 2, "selector": "app=blue"}


def test_an_update_needs_a_resource_version(widgets: Widgets) -> None:
    made = widgets.create().body
    refused = widgets.here.api.put(widgets.at("blue"), widgets.body(size=2)).refusal
    words = "metadata.resourceVersion: Invalid value: 0: must be specified for an update"
    assert refused == f'422 Invalid: widgets.{widgets.group} "blue" is invalid: {words}'
    assert widgets.here.api.put(widgets.at("blue"), {**made, "spec": {"size": 2}}).code == 200


def test_a_strategic_patch_is_not_supported(widgets: Widgets) -> None:
    widgets.create()
    refused = widgets.here.api.patch(widgets.at("blue"), {"spec": {"size": 2}}, "strategic").refusal
    assert refused == (
        "415 UnsupportedMediaType: the body of the request was in an unknown format - accepted media types include: "
        "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
    )


def test_a_null_counts_as_not_set_unless_it_is_applied(widgets: Widgets) -> None:
    """Server-side apply, and so Helm 4, is refused where a POST of the same object succeeds."""
    posted = widgets.create("posted", replicas=None, color=None, free=None)
    assert (posted.code, posted.body["spec"]) == (201, {"size": 1, "color": "red"})

    def applied(**spec: Any) -> str:
        return widgets.here.api.apply(widgets.at("applied"), widgets.body("applied", **spec)).refusal

    begins = f'422 Invalid: Widget.{widgets.group} "applied" is invalid: '
    for field, type_ in (("size", "integer"), ("free", "object"), ("parts", "array")):
        words = f'spec.{field}: Invalid value: "null": spec.{field} in body must be of type {type_}: "null"'
        assert applied(**{field: None}) == begins + words
    assert "spec.parts[0] in body must be of type string" in applied(parts=[None])
    assert widgets.here.api.apply(widgets.at("applied"), widgets.body("applied", color=None)).code == 201
    assert widgets.get("applied").body["spec"] == {"size": 1, "color": "red"}


def test_apply_sets_the_field_owner(widgets: Widgets) -> None:
    path = widgets.at("blue")
    assert widgets.here.api.apply(path, widgets.body(size=4)).code == 201
    refused = widgets.here.api.apply(path, widgets.body(size=5), "other").refusal
    assert refused == '409 Conflict: Apply failed with 1 conflict: conflict with "tester": .spec.size'


def test_a_field_that_is_not_selectable_is_refused(widgets: Widgets) -> None:
    refused = widgets.here.api.get(widgets.at(), fieldSelector="spec.size=1").refusal
    assert refused == "400 BadRequest: field label not supported: spec.size"
    widgets.create()
    assert len(widgets.here.api.get(widgets.at(), fieldSelector="metadata.name=blue").body["items"]) == 1


def test_the_scope_and_stored_versions_of_a_crd_are_immutable(widgets: Widgets) -> None:
    here, name = widgets.here, widgets.definition
    prefix = f'422 Invalid: CustomResourceDefinition.apiextensions.k8s.io "{name}" is invalid: '
    assert here.patch("CustomResourceDefinition", name, {"spec": {"scope": "Cluster"}}).refusal == (
        f'{prefix}spec.scope: Invalid value: "Cluster": field is immutable'
    )
    other = {"spec": {"versions": [version("v2", storage=True)]}}
    assert here.patch("CustomResourceDefinition", name, other).refusal == (
        f'{prefix}status.storedVersions[0]: Invalid value: "v1": missing from spec.versions; v1 was previously a '
        "storage version, and must remain in spec.versions until a storage migration ensures no data remains "
        "persisted in v1 and removes v1 from status.storedVersions"
    )


def test_a_version_that_is_no_longer_served_is_not_found(widgets: Widgets) -> None:
    widgets.create()
    versions = [version("v1", storage=True), version("v1beta1", served=False)]
    widgets.here.patch("CustomResourceDefinition", widgets.definition, {"spec": {"versions": versions}})
    assert widgets.here.soon(lambda: widgets.get("blue", "v1beta1").code == 404)
    assert widgets.here.soon(lambda: widgets.get("blue").code == 200)


def test_custom_resources_are_deleted_with_their_crd(widgets: Widgets) -> None:
    widgets.create("free")
    widgets.create("held")
    widgets.patch("held", {"metadata": {"finalizers": ["example.com/hold"]}})
    here = widgets.here
    going = here.delete("CustomResourceDefinition", widgets.definition).body
    assert going["metadata"]["finalizers"] == ["customresourcecleanup.apiextensions.k8s.io"]

    def names() -> list[str]:
        return [item["metadata"]["name"] for item in here.api.get(widgets.at()).body["items"]]

    assert here.soon(lambda: names() == ["held"])
    words = "create not allowed while custom resource definition is terminating"
    refused = f'403 Forbidden: widgets.{widgets.group} "new" is forbidden: {words}'
    assert here.soon(lambda: widgets.create("new").refusal == refused)
    assert here.create(definition(widgets.group)).refusal == (
        "409 AlreadyExists: object is being deleted: customresourcedefinitions.apiextensions.k8s.io "
        f'"{widgets.definition}" already exists'
    )
    widgets.patch("held", {"metadata": {"finalizers": None}})
    assert here.soon(lambda: widgets.defined().code == 404)
    assert here.soon(lambda: here.api.get(widgets.at()).code == 404)
    assert here.api.get(f"/apis/{widgets.group}").code == 404


def test_a_cluster_scoped_kind_has_no_namespace(here: Here) -> None:
    group = f"{here.name}.example.com"
    here.create(definition(group, scope="Cluster"))
    path = f"/apis/{group}/v1/widgets"
    assert here.soon(lambda: here.api.get(path).code == 200)
    body = {"apiVersion": f"{group}/v1", "kind": "Widget", "metadata": {"name": "blue"}, "spec": {"size": 1}}
    assert here.api.post(path, body).code == 201
    assert here.api.get(f"/apis/{group}/v1/namespaces/{here.name}/widgets").code == 404
    here.delete("CustomResourceDefinition", f"widgets.{group}")


BAD_DEFINITIONS: dict[str, tuple[Body, str]] = {
    "another name": (
        {"metadata": {"name": "gadgets.GROUP"}},
        'metadata.name: Invalid value: "gadgets.GROUP": must be spec.names.plural+"."+spec.group',
    ),
    "no scope": (
        {"spec": {"scope": "World"}},
        'spec.scope: Unsupported value: "World": supported values: "Cluster", "Namespaced"',
    ),
    "a field without a type": (
        {
            "spec": {
                "versions": [
                    {
                        **version("v1", storage=True),
                        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {}}}},
                    }
                ]
            }
        },
        "spec.validation.openAPIV3Schema.properties[spec].type: Required value: must not be empty for "
        "specified object fields",
    ),
}


@pytest.mark.parametrize("given", BAD_DEFINITIONS)
def test_an_invalid_crd_is_refused(here: Here, given: str) -> None:
    changed, words = BAD_DEFINITIONS[given]
    group = f"{here.name}.example.com"
    body = definition(group)
    meta = {key: value.replace("GROUP", group) for key, value in changed.get("metadata", {}).items()}
    body = {**body, "metadata": {**body["metadata"], **meta}, "spec": {**body["spec"], **changed.get("spec", {})}}
    prefix = f'422 Invalid: CustomResourceDefinition.apiextensions.k8s.io "{body["metadata"]["name"]}" is invalid: '
    assert here.create(body).refusal == prefix + words.replace("GROUP", group)
