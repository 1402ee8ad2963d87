"""Get and list: selectors, pages and versions. On both arms."""

from __future__ import annotations

import pytest
from arms import Here, config

from seatrial.model.resource import Body

LETTERS = "abcde"


@pytest.fixture
def letters(here: Here) -> Here:
    """Five ConfigMaps, a to e, in a stable namespace."""
    here.version()
    for number, letter in enumerate(LETTERS):
        here.create(config(letter, labels={"letter": letter, "number": str(number), "odd": str(number % 2)}))
    return here


LABELS = {
    "letter=a": "a",
    "letter==b": "b",
    "letter!=a": "bcde",
    "letter in (a,b)": "ab",
    "letter notin (a, b)": "cde",
    "odd": "abcde",
    "!odd": "",
    "odd=0,letter in (a,b,c)": "ac",
    " odd = 0 , letter!=a": "ce",
    "number>1,number<4": "cd",
    "letter in ()": "",
    "letter=a,letter=b": "",
    "": "abcde",
}


@pytest.mark.parametrize("selector", LABELS)
def test_label_selectors(letters: Here, selector: str) -> None:
    assert "".join(letters.names("ConfigMap", labelSelector=selector)) == LABELS[selector]


BAD_LABELS = {
    "=a": "found '=', expected: !, identifier, or 'end of string'",
    "a b": "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt",
    "a in b": "unable to parse requirement: found 'b' expected: '('",
    "a in (b": "unable to parse requirement: found '', expected: ',' or ')'",
    "a=b=c": "found '=', expected: ',' or 'end of string'",
    "a,": "found '', expected: identifier after ','",
    "!!a": "unable to parse requirement: found '!', expected: identifier",
    "a>b": "unable to parse requirement: values[0]: Invalid value: \"b\": for 'Gt', 'Lt' operators, the value must "
    "be an integer",
    "a/b/c": 'unable to parse requirement: <nil>: Invalid value: "a/b/c": a qualified name must consist of '
    "alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. "
    "'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. "
    "'example.com/MyName')",
}


@pytest.mark.parametrize("selector", BAD_LABELS)
def test_an_invalid_label_selector_is_refused(here: Here, selector: str) -> None:
    refused = here.api.get(here.at("ConfigMap"), labelSelector=selector).refusal
    assert refused == f"400 BadRequest: {BAD_LABELS[selector]}"


FIELDS = {
    "metadata.name=a": "a",
    "metadata.name!=a": "bcde",
    "metadata.name=a,metadata.name=b": "",
    "metadata.namespace=elsewhere": "",
}


@pytest.mark.parametrize("selector", FIELDS)
def test_field_selectors(letters: Here, selector: str) -> None:
    assert "".join(letters.names("ConfigMap", fieldSelector=selector)) == FIELDS[selector]


BAD_FIELDS = {
    ("ConfigMap", "data.color=red"): '"data.color" is not a known field selector: only "metadata.name", '
    '"metadata.namespace"',
    ("Deployment", "status.replicas=1"): '"status.replicas" is not a known field selector: only "metadata.name", '
    '"metadata.namespace"',
    ("Pod", "spec.colour=red"): "field label not supported: spec.colour",
    ("Job", "status.active=1"): 'field label "status.active" not supported for Job',
    ("ConfigMap", "metadata.name"): "invalid selector: 'metadata.name'; can't understand 'metadata.name'",
    ("ConfigMap", "metadata.name=a=b"): "invalid field selector: unescaped character in value: 61",
}


@pytest.mark.parametrize("given", BAD_FIELDS)
def test_an_invalid_field_selector_is_refused(here: Here, given: tuple[str, str]) -> None:
    kind, selector = given
    refused = here.api.get(here.at(kind), fieldSelector=selector).refusal
    assert refused == f"400 BadRequest: {BAD_FIELDS[given]}"


def test_secrets_are_selected_by_their_type(here: Here) -> None:
    here.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "plain"}})
    token = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login"}, "type": "kubernetes.io/basic-auth"}
    here.create({**token, "stringData": {"username": "me", "password": "x"}})
    assert here.names("Secret", fieldSelector="type=Opaque") == ["plain"]
    assert here.names("Secret", fieldSelector="type=kubernetes.io/basic-auth") == ["login"]


def test_pages_of_a_list_show_one_version(letters: Here) -> None:
    path = letters.at("ConfigMap")
    first = letters.api.get(path, limit=2).body
    assert [item["metadata"]["name"] for item in first["items"]] == ["a", "b"]
    assert first["metadata"]["remainingItemCount"] == 4
    letters.delete("ConfigMap", "d")
    letters.create(config("cc"))
    second = letters.api.get(path, limit=2, **{"continue": first["metadata"]["continue"]}).body
    assert [item["metadata"]["name"] for item in second["items"]] == ["c", "d"]
    assert second["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
    last = letters.api.get(path, **{"continue": second["metadata"]["continue"]}).body
    assert [item["metadata"]["name"] for item in last["items"]] == ["e", "kube-root-ca.crt"]
    assert "continue" not in last["metadata"]
    assert letters.names("ConfigMap") == ["a", "b", "c", "cc", "e"]


def test_remaining_items_of_a_selection_are_not_counted(letters: Here) -> None:
    page = letters.api.get(letters.at("ConfigMap"), limit=2, labelSelector="odd=0").body
    assert [item["metadata"]["name"] for item in page["items"]] == ["a", "c"]
    assert "remainingItemCount" not in page["metadata"]


# Each: options of a list, and the server's error.
BAD_LISTS: dict[str, tuple[dict[str, str | int], str]] = {
    "a limit that is no number": ({"limit": "few"}, '400 BadRequest: strconv.ParseInt: parsing "few": invalid syntax'),
    "a version that is none": (
        {"resourceVersion": "new"},
        '400 BadRequest: invalid resource version: resourceVersion: Invalid value: "new": strconv.ParseUint: parsing '
        '"new": invalid syntax',
    ),
    "a page that is none": (
        {"continue": "!"},
        "400 BadRequest: invalid continue token: continue key is not valid: illegal base64 data at input byte 0",
    ),
    "a match without a version": (
        {"resourceVersionMatch": "Exact"},
        '422 Invalid: ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch is '
        "forbidden unless resourceVersion is provided",
    ),
    "initial events": (
        {"sendInitialEvents": "true"},
        '422 Invalid: ListOptions.meta.k8s.io "" is invalid: sendInitialEvents: Forbidden: sendInitialEvents is '
        "forbidden for list",
    ),
}


@pytest.mark.parametrize("given", BAD_LISTS)
def test_an_invalid_list_option_is_refused(here: Here, given: str) -> None:
    query, words = BAD_LISTS[given]
    assert here.api.get(here.at("ConfigMap"), **query).refusal == words


def test_a_future_resource_version_is_refused(here: Here) -> None:
    refused = here.api.get(here.at("ConfigMap"), resourceVersion="999999999999")
    assert refused.code == 504
    assert refused.body["message"].startswith("Timeout: Too large resource version: 999999999999, current: ")
    assert refused.body["details"]["causes"] == [
        {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    ]


# Each: method, path below the namespace (or absolute), and the response.
PLACES = {
    ("GET", "/api/v1/gadgets"): 404,
    ("GET", "/apis/example.org/v1/gadgets"): 404,
    ("GET", "/apis/apps/v9/deployments"): 404,
    ("GET", "/api/v1/pods/web"): 404,
    ("GET", "nodes"): 404,
    ("GET", "configmaps/app/status"): 404,
    ("GET", "configmaps/app/status/more"): 404,
    ("GET", "configmaps/.."): 400,
    ("GET", "configmaps/%2e%2e"): 400,
    ("GET", "configmaps/a%2Fb"): 404,
    ("POST", "configmaps/app"): 405,
    ("PUT", "configmaps"): 405,
    ("PATCH", "configmaps"): 405,
    ("DELETE", "/api/v1/configmaps"): 405,
    ("DELETE", "/api/v1/namespaces"): 405,
    ("POST", "/api/v1/configmaps"): 405,
    ("POST", "/apis/apps/v1"): 405,
    ("DELETE", "/version"): 405,
    ("GET", "/healthz"): 200,
    ("GET", "/readyz"): 200,
    ("GET", "/api"): 200,
    ("GET", "/apis/"): 200,
    ("GET", "/apis/apps"): 200,
}


@pytest.mark.parametrize("given", PLACES, ids=lambda given: f"{given[0]} {given[1]}")
def test_paths(here: Here, given: tuple[str, str]) -> None:
    method, path = given
    whole = path if path.startswith("/") else f"/api/v1/namespaces/{here.name}/{path}"
    body: Body | None = {} if method in ("POST", "PUT", "PATCH") else None
    content_type = "application/merge-patch+json" if method == "PATCH" else "application/json"
    assert here.api.send(method, whole, body, content_type).code == PLACES[given]


PARTIAL = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
PARTIAL_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"


def test_metadata_of_objects_without_the_rest(letters: Here) -> None:
    found = letters.api.send("GET", letters.at("ConfigMap", "a"), accept=PARTIAL).body
    assert (found["kind"], found["apiVersion"], found["metadata"]["name"]) == (
        "PartialObjectMetadata",
        "meta.k8s.io/v1",
        "a",
    )
    listed = letters.api.send("GET", letters.at("ConfigMap"), accept=PARTIAL_LIST).body
    assert (listed["kind"], listed["apiVersion"]) == ("PartialObjectMetadataList", "meta.k8s.io/v1")
    assert {tuple(sorted(item)) for item in listed["items"]} <= {("apiVersion", "kind", "metadata"), ("metadata",)}
