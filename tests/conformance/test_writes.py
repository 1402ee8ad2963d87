"""Create, update, patch: what is stored, what is refused, and the errors. On both arms."""

from __future__ import annotations

import re
from typing import Any

import pytest
from arms import Here, config, deployment

from seatrial.model.resource import Body

MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"
OTHER_UID = "11111111-1111-1111-1111-111111111111"


def test_a_created_object_has_a_uid_a_version_and_a_time(here: Here) -> None:
    made = here.create(config(data={"color": "red"}))
    assert made.code == 201
    meta = made.body["metadata"]
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", meta["uid"])
    assert meta["resourceVersion"].isdigit()
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", meta["creationTimestamp"])
    assert here.get("ConfigMap", "app").body == made.body


def test_a_duplicate_name_already_exists(here: Here) -> None:
    here.create(config())
    assert here.create(config()).refusal == '409 AlreadyExists: configmaps "app" already exists'
    here.create(deployment())
    assert here.create(deployment()).refusal == '409 AlreadyExists: deployments.apps "web" already exists'


def test_a_missing_object_is_not_found(here: Here) -> None:
    assert here.get("ConfigMap", "app").refusal == '404 NotFound: configmaps "app" not found'
    assert here.delete("Deployment", "web").refusal == '404 NotFound: deployments.apps "web" not found'
    assert here.put(config()).refusal == '404 NotFound: configmaps "app" not found'
    assert here.patch("ConfigMap", "app", {}).refusal == '404 NotFound: configmaps "app" not found'


def test_a_patch_does_not_take_the_namespace_away(here: Here) -> None:
    namespace = here.create(config()).body["metadata"]["namespace"]
    patched = here.patch("ConfigMap", "app", {"metadata": {"namespace": None}, "data": {"color": "red"}})
    assert (patched.code, patched.body["metadata"]["namespace"]) == (200, namespace)


def test_nothing_is_created_in_a_missing_namespace(here: Here) -> None:
    refused = here.api.post("/api/v1/namespaces/nowhere/configmaps", config())
    assert refused.refusal == '404 NotFound: namespaces "nowhere" not found'


# Each: the body for the path of ConfigMaps, and the server's error.
BAD_CREATIONS: dict[str, tuple[Body, str]] = {
    "no name": (
        {"apiVersion": "v1", "kind": "ConfigMap"},
        '422 Invalid: ConfigMap "" is invalid: metadata.name: Required value: name or generateName is required',
    ),
    "a version": (
        config(resourceVersion="5"),
        "500 : resourceVersion should not be set on objects to be created",
    ),
    "another namespace": (
        config(namespace="other"),
        "400 BadRequest: the namespace of the provided object does not match the namespace sent on the request",
    ),
    "a name of the wrong letters": (
        config("App_1"),
        '422 Invalid: ConfigMap "App_1" is invalid: metadata.name: Invalid value: "App_1": a lowercase RFC 1123 '
        "subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an "
        "alphanumeric character (e.g. 'example.com', regex used for validation is "
        r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
    ),
    "a label of the wrong letters": (
        config(labels={"app": "a b"}),
        '422 Invalid: ConfigMap "app" is invalid: metadata.labels: Invalid value: "a b": a valid label must be an '
        "empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
        "alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
        "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
    ),
    "a label that is a number": (
        config(labels={"app": 1}),
        '400 BadRequest: ConfigMap in version "v1" cannot be handled as a ConfigMap: json: cannot unmarshal number '
        "into Go struct field ObjectMeta.metadata.labels of type string",
    ),
    "an annotation with two slashes": (
        config(annotations={"helm.sh/depends-on/resource-groups": "[]"}),
        '422 Invalid: ConfigMap "app" is invalid: metadata.annotations: Invalid value: '
        "\"helm.sh/depends-on/resource-groups\": a qualified name must consist of alphanumeric characters, '-', "
        "'_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or "
        "'123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS "
        "subdomain prefix and '/' (e.g. 'example.com/MyName')",
    ),
    "a finalizer without a domain": (
        config(finalizers=["mine"]),
        '422 Invalid: ConfigMap "app" is invalid: metadata.finalizers[0]: Invalid value: "mine": name is neither a '
        "standard finalizer name nor is it fully qualified",
    ),
    "an owner without a uid": (
        config(ownerReferences=[{"apiVersion": "v1", "kind": "ConfigMap", "name": "other"}]),
        '422 Invalid: ConfigMap "app" is invalid: metadata.ownerReferences.uid: Invalid value: "": must not be empty',
    ),
    "a key of the wrong letters": (
        config(data={"a b": "1"}),
        '422 Invalid: ConfigMap "app" is invalid: data[a b]: Invalid value: "a b": a valid config key must consist of '
        "alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for "
        "validation is '[-._a-zA-Z0-9]+')",
    ),
    "more than a megabyte": (
        config(data={"much": "x" * (1024 * 1024 + 1)}),
        '422 Invalid: ConfigMap "app" is invalid: []: Too long: may not be more than 1048576 bytes',
    ),
}


@pytest.mark.parametrize("given", BAD_CREATIONS)
def test_an_invalid_creation_is_refused(here: Here, given: str) -> None:
    body, words = BAD_CREATIONS[given]
    assert here.api.post(here.at("ConfigMap"), body).refusal == words
    assert here.names("ConfigMap") == []


def test_a_generated_name_has_five_more_letters(here: Here) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "app-"}}
    names = [here.api.post(here.at("ConfigMap"), body).body["metadata"]["name"] for _ in range(3)]
    assert len(set(names)) == 3
    assert all(re.fullmatch("app-[bcdfghjklmnpqrstvwxz2456789]{5}", name) for name in names)


def test_a_name_has_precedence_over_generate_name(here: Here) -> None:
    assert here.create(config(generateName="other-")).body["metadata"]["name"] == "app"


def test_a_dry_run_stores_nothing(here: Here) -> None:
    assert here.create(config(), dryRun="All").code == 201
    assert here.names("ConfigMap") == []
    here.create(config(data={"color": "red"}))
    assert here.put(config(data={"color": "blue"}), dryRun="All").body["data"] == {"color": "blue"}
    assert here.patch("ConfigMap", "app", {"data": {"color": "blue"}}, dryRun="All").body["data"] == {"color": "blue"}
    assert here.apply(config("new"), dryRun="All").code == 201
    assert here.delete("ConfigMap", "app", dryRun="All").code == 200
    assert here.get("ConfigMap", "app").body["data"] == {"color": "red"}
    assert here.names("ConfigMap") == ["app"]


def test_an_update_from_an_old_version_is_a_conflict(here: Here) -> None:
    old = here.create(config(data={"color": "red"})).body
    assert here.put({**old, "data": {"color": "blue"}}).code == 200
    assert here.put(old).refusal == f'409 Conflict: Operation cannot be fulfilled on configmaps "app": {MODIFIED}'
    patch = {"metadata": {"resourceVersion": old["metadata"]["resourceVersion"]}, "data": {"color": "green"}}
    refused = here.patch("ConfigMap", "app", patch).refusal
    assert refused == f'409 Conflict: Operation cannot be fulfilled on configmaps "app": {MODIFIED}'
    assert here.get("ConfigMap", "app").body["data"] == {"color": "blue"}


def test_an_update_without_a_version_overwrites_if_the_kind_allows(here: Here) -> None:
    here.create(config(data={"color": "red"}))
    assert here.put(config(data={"color": "blue"})).code == 200
    budget: Body = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web"},
        "spec": {"minAvailable": 1},
    }
    here.create(budget)
    assert here.put(budget).refusal == (
        '422 Invalid: poddisruptionbudgets.policy "web" is invalid: metadata.resourceVersion: Invalid value: 0: '
        "must be specified for an update"
    )


def test_an_update_that_changes_nothing_keeps_the_version(here: Here) -> None:
    made = here.create(config(data={"color": "red"})).body
    assert here.put(made).body == made
    assert here.patch("ConfigMap", "app", {}).body == made
    assert here.patch("ConfigMap", "app", {"data": {"color": "red"}}).body == made


def test_the_generation_counts_changes_of_the_spec(here: Here) -> None:
    assert here.create(deployment()).body["metadata"]["generation"] == 1
    assert here.patch("Deployment", "web", {"metadata": {"labels": {"a": "b"}}}).body["metadata"]["generation"] == 1
    assert here.patch("Deployment", "web", {"spec": {"paused": True}}).body["metadata"]["generation"] == 2


# Each: the type of the patch, the patch, and the result for the data {"a": "1"}.
PATCHES: dict[str, tuple[str, Any, Body]] = {
    "merge adds": ("merge", {"data": {"b": "2"}}, {"a": "1", "b": "2"}),
    "merge removes": ("merge", {"data": {"a": None, "b": "2"}}, {"b": "2"}),
    "json adds": ("json", [{"op": "add", "path": "/data/b", "value": "2"}], {"a": "1", "b": "2"}),
    "json tests and replaces": (
        "json",
        [{"op": "test", "path": "/data/a", "value": "1"}, {"op": "replace", "path": "/data/a", "value": "3"}],
        {"a": "3"},
    ),
    "strategic adds": ("strategic", {"data": {"b": "2"}}, {"a": "1", "b": "2"}),
    "strategic replaces": ("strategic", {"data": {"$patch": "replace", "b": "2"}}, {"b": "2"}),
    "apply adds": (
        "apply",
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "app"}, "data": {"b": "2"}},
        {"a": "1", "b": "2"},
    ),
}


@pytest.mark.parametrize("given", PATCHES)
def test_a_patch_changes_the_data(here: Here, given: str) -> None:
    type_, patch, data = PATCHES[given]
    here.create(config(data={"a": "1"}))
    query = {"fieldManager": "tester"} if type_ == "apply" else {}
    changed = here.patch("ConfigMap", "app", patch, type_, **query)
    assert (changed.code, changed.body.get("data")) == (200, data)


BAD_PATCHES: dict[str, tuple[str, Any, str]] = {
    "a test that fails": (
        "json",
        [{"op": "test", "path": "/data/a", "value": "2"}],
        "422 Invalid: the server rejected our request due to an error in our request",
    ),
    "nothing to remove": (
        "json",
        [{"op": "remove", "path": "/data/none"}],
        "422 Invalid: the server rejected our request due to an error in our request",
    ),
    "another name": (
        "merge",
        {"metadata": {"name": "other"}},
        "400 BadRequest: the name of the object (other) does not match the name on the URL (app)",
    ),
    "another namespace": (
        "merge",
        {"metadata": {"namespace": "other"}},
        "400 BadRequest: the namespace of the provided object does not match the namespace sent on the request",
    ),
    "no name": (
        "merge",
        {"metadata": {"name": None}},
        "400 BadRequest: the name of the object (app based on URL) was undeterminable: name must be provided",
    ),
    "another uid": (
        "merge",
        {"metadata": {"uid": OTHER_UID}},
        f'422 Invalid: ConfigMap "app" is invalid: metadata.uid: Invalid value: "{OTHER_UID}": field is immutable',
    ),
    "another kind, applied": (
        "apply",
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "app"}},
        "400 BadRequest: invalid object type: /v1, Kind=Secret",
    ),
    "no kind, applied": (
        "apply",
        {"metadata": {"name": "app"}},
        "400 BadRequest: invalid object type: /, Kind=",
    ),
}


@pytest.mark.parametrize("given", BAD_PATCHES)
def test_an_invalid_patch_is_refused(here: Here, given: str) -> None:
    type_, patch, words = BAD_PATCHES[given]
    made = here.create(config(data={"a": "1"})).body
    query = {"fieldManager": "tester"} if type_ == "apply" else {}
    assert here.patch("ConfigMap", "app", patch, type_, **query).refusal == words
    assert here.get("ConfigMap", "app").body == made


def test_a_strategic_patch_merges_containers_by_name(here: Here) -> None:
    here.create(deployment())

    def containers(patch: Body) -> list[str]:
        spec = {"template": {"spec": {"containers": [patch]}}}
        body = here.patch("Deployment", "web", {"spec": spec}, "strategic").body
        return [f"{found['name']} {found['image']}" for found in body["spec"]["template"]["spec"]["containers"]]

    assert containers({"name": "proxy", "image": "proxy:1"}) == ["proxy proxy:1", "main app:1"]
    assert containers({"name": "main", "image": "app:2"}) == ["proxy proxy:1", "main app:2"]
    assert containers({"name": "proxy", "$patch": "delete"}) == ["main app:2"]


def test_apply_conflicts_with_other_owners_unless_forced(here: Here) -> None:
    assert here.apply(config(data={"color": "red"}), "first").code == 201
    refused = here.apply(config(data={"color": "blue"}), "second")
    assert refused.refusal == '409 Conflict: Apply failed with 1 conflict: conflict with "first": .data.color'
    assert refused.body["details"]["causes"] == [
        {"reason": "FieldManagerConflict", "message": 'conflict with "first"', "field": ".data.color"}
    ]
    assert here.apply(config(data={"color": "blue"}), "second", force="true").body["data"] == {"color": "blue"}
    assert here.apply(config(data={"size": "1"}), "first").body["data"] == {"color": "blue", "size": "1"}


def test_fields_that_are_no_longer_applied_are_removed(here: Here) -> None:
    here.apply(config(data={"color": "red", "size": "1"}))
    assert here.apply(config(data={"size": "1"})).body["data"] == {"size": "1"}


def test_an_apply_needs_a_manager(here: Here) -> None:
    refused = here.patch("ConfigMap", "app", config(), "apply").refusal
    words = "fieldManager: Required value: is required for apply patch"
    assert refused == f'422 Invalid: PatchOptions.meta.k8s.io "" is invalid: {words}'


# Each: method, options, and the server's error.
BAD_OPTIONS: dict[str, tuple[str, dict[str, str | int], str]] = {
    "create, a dry run of a part": (
        "POST",
        {"dryRun": "Some"},
        'CreateOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["Some"]: supported values: "All"',
    ),
    "create, a validation of its own": (
        "POST",
        {"fieldValidation": "Loose"},
        'CreateOptions.meta.k8s.io "" is invalid: fieldValidation: Unsupported value: "Loose": supported values: "", '
        '"Ignore", "Strict", "Warn"',
    ),
    "update, a manager of a long name": (
        "PUT",
        {"fieldManager": "m" * 129},
        'UpdateOptions.meta.k8s.io "" is invalid: fieldManager: Too long: may not be more than 128 bytes',
    ),
    "patch, force": (
        "PATCH",
        {"force": "true"},
        'PatchOptions.meta.k8s.io "" is invalid: force: Forbidden: may not be specified for non-apply patch',
    ),
    "delete, an unknown propagation": (
        "DELETE",
        {"propagationPolicy": "Sideways"},
        'DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Unsupported value: "Sideways": supported values: '
        '"Foreground", "Background", "Orphan", "nil"',
    ),
}


@pytest.mark.parametrize("given", BAD_OPTIONS)
def test_an_invalid_option_is_refused(here: Here, given: str) -> None:
    method, query, words = BAD_OPTIONS[given]
    here.create(config())
    path = here.at("ConfigMap", "" if method == "POST" else "app")
    body = None if method == "DELETE" else config("new") if method == "POST" else config()
    content_type = "application/merge-patch+json" if method == "PATCH" else "application/json"
    assert here.api.send(method, path, body, content_type, query=query).refusal == f"422 Invalid: {words}"
    assert here.names("ConfigMap") == ["app"]


@pytest.mark.parametrize(
    ("type_", "words"),
    [("merge", "error decoding patch: "), ("json", "error decoding patch: "), ("strategic", "")],
)
def test_a_patch_that_is_no_json_is_refused(here: Here, type_: str, words: str) -> None:
    here.create(config())
    refused = here.api.patch(f"{here.at('ConfigMap')}/app", b"{data: {a: b}}", type_)
    error = "invalid character 'd' looking for beginning of object key string"
    assert refused.refusal == f"400 BadRequest: {words}{error}"
