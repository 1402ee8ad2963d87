"""Deletion of namespaces: their content, what blocks them, what is refused in them. On both arms."""

from __future__ import annotations

from typing import Any

import pytest
from arms import Here, config

from seatrial.model.resource import Body

HELD: dict[str, Any] = {"finalizers": ["example.com/hold"]}
LET_GO = {"metadata": {"finalizers": None}}


def namespace(name: str, **metadata: Any) -> Body:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, **metadata}}


def conditions(body: Body) -> dict[str, str]:
    return {
        found["type"]: f"{found['status']} {found['reason']}: {found['message']}"
        for found in body["status"].get("conditions") or ()
    }


def test_a_namespace_has_a_name_label_and_a_finalizer(here: Here) -> None:
    body = here.get("Namespace", here.name).body
    assert body["metadata"]["labels"] == {"kubernetes.io/metadata.name": here.name}
    assert (body["spec"], body["status"]) == ({"finalizers": ["kubernetes"]}, {"phase": "Active"})


@pytest.mark.needs_controllers
def test_every_namespace_gets_an_account_and_the_root_ca(here: Here) -> None:
    assert here.soon(lambda: here.get("ServiceAccount", "default").code == 200)
    assert here.soon(lambda: here.get("ConfigMap", "kube-root-ca.crt").code == 200)


@pytest.mark.needs_controllers
def test_deleting_a_namespace_deletes_its_content(here: Here) -> None:
    here.version()
    here.create(config())
    going = here.delete("Namespace", here.name).body
    assert going["status"]["phase"] == "Terminating"
    assert here.soon(lambda: here.get("Namespace", here.name).code == 404)
    assert here.get("ConfigMap", "app").refusal == '404 NotFound: configmaps "app" not found'
    assert here.create(config()).refusal == f'404 NotFound: namespaces "{here.name}" not found'


@pytest.mark.needs_controllers
def test_content_with_finalizers_blocks_its_namespace(here: Here) -> None:
    here.version()
    here.create(config("held", **HELD))
    here.create(config("free"))
    here.delete("Namespace", here.name)

    def conditions_of() -> dict[str, str]:
        return conditions(here.get("Namespace", here.name).body)

    assert here.soon(lambda: conditions_of().get("NamespaceFinalizersRemaining", "").startswith("True"))
    assert conditions_of() == {
        "NamespaceDeletionDiscoveryFailure": "False ResourcesDiscovered: All resources successfully discovered",
        "NamespaceDeletionGroupVersionParsingFailure": "False ParsedGroupVersions: All legacy kube types successfully "
        "parsed",
        "NamespaceDeletionContentFailure": "False ContentDeleted: All content successfully deleted, may be waiting on "
        "finalization",
        "NamespaceContentRemaining": "True SomeResourcesRemain: Some resources are remaining: configmaps. has 1 "
        "resource instances",
        "NamespaceFinalizersRemaining": "True SomeFinalizersRemain: Some content in the namespace has finalizers "
        "remaining: example.com/hold in 1 resource instances",
    }
    assert here.names("ConfigMap") == ["held"]
    here.patch("ConfigMap", "held", LET_GO)
    assert here.soon(lambda: here.get("Namespace", here.name).code == 404)


@pytest.mark.needs_controllers
def test_nothing_is_created_in_a_terminating_namespace(here: Here) -> None:
    here.version()
    here.create(config("held", **HELD))
    here.delete("Namespace", here.name)
    words = f"unable to create new content in namespace {here.name} because it is being terminated"
    for refused in (here.create(config("new")), here.apply(config("new"))):
        assert refused.refusal == f'403 Forbidden: configmaps "new" is forbidden: {words}'
        assert refused.body["details"]["causes"] == [
            {
                "reason": "NamespaceTerminating",
                "message": f"namespace {here.name} is being terminated",
                "field": "metadata.namespace",
            }
        ]
    assert here.patch("ConfigMap", "held", {"data": {"color": "red"}}).code == 200
    here.patch("ConfigMap", "held", LET_GO)


@pytest.mark.needs_controllers
def test_a_terminating_namespace_can_be_updated_but_not_recreated(here: Here) -> None:
    here.version()
    here.create(config("held", **HELD))
    here.delete("Namespace", here.name)
    assert here.create(namespace(here.name)).refusal == (
        f'409 AlreadyExists: object is being deleted: namespaces "{here.name}" already exists'
    )
    applied = here.apply(namespace(here.name, labels={"color": "red"}))
    assert (applied.code, applied.body["status"]["phase"]) == (200, "Terminating")
    here.patch("ConfigMap", "held", LET_GO)
    assert here.soon(lambda: here.get("Namespace", here.name).code == 404)
    assert here.create(namespace(here.name)).code == 201


@pytest.mark.needs_controllers
def test_a_finalizer_blocks_an_empty_namespace(here: Here) -> None:
    other = f"{here.name}-other"
    here.create(namespace(other, **HELD))
    here.delete("Namespace", other)
    assert here.soon(lambda: not here.get("Namespace", other).body["spec"].get("finalizers"))
    assert here.get("Namespace", other).body["metadata"]["finalizers"] == ["example.com/hold"]
    here.patch("Namespace", other, LET_GO)
    assert here.get("Namespace", other).code == 404


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public"])
def test_system_namespaces_cannot_be_deleted(here: Here, name: str) -> None:
    refused = here.delete("Namespace", name, dryRun="All").refusal
    assert refused == f'403 Forbidden: namespaces "{name}" is forbidden: this namespace may not be deleted'


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("a.b", "must not contain dots"),
        (
            "a_b",
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start "
            "and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
            "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
        ),
    ],
)
def test_the_name_of_a_namespace_is_a_dns_label(here: Here, name: str, problem: str) -> None:
    refused = here.create(namespace(name)).refusal
    assert refused == f'422 Invalid: Namespace "{name}" is invalid: metadata.name: Invalid value: "{name}": {problem}'
