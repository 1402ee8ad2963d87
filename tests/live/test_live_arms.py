"""The client and snapshots against the embedded API, and against a real API server if one is given."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from apiclient import Api
from arms import Here, config

from seatrial.kinds.tables.catalogue import ServedKind
from seatrial.live import client as live
from seatrial.live import secrets
from seatrial.live.client import Client
from seatrial.live.kubeconfig import ClusterAccess
from seatrial.live.snapshot import take
from seatrial.live.transport import RefusedRequest
from seatrial.live.watching import follow
from seatrial.model.resource import name_of

SECONDS_MAX = 20


@pytest.fixture
def client(here: Here) -> Iterator[Client]:
    with Client(_target(here.api, here.name)) as found:
        yield found


def _target(api: Api, namespace: str) -> ClusterAccess:
    token = api._headers.get("Authorization", "").removeprefix("Bearer ")
    return ClusterAccess(api.url, namespace=namespace, token=token, insecure=api.tls is not None)


def kind(client: Client, name: str) -> ServedKind:
    found = client.served().named(name)
    assert found is not None
    return found


@pytest.mark.parametrize("field", ["data", "stringData"])
def test_a_secret_has_its_keys_and_its_type_and_no_value(here: Here, client: Client, field: str) -> None:
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login"}, "type": "example.com/login"}
    here.create({**body, field: {"user": "cm9vdA==", "password": "aHVudGVyMg=="}})
    found = secrets.secret(client, kind(client, "secrets"), here.name, "login")
    assert found is not None
    assert (found["type"], found["data"]) == ("example.com/login", {"password": "", "user": ""})
    assert "annotations" not in found["metadata"]


def test_keys_of_a_secret_that_was_applied(here: Here, client: Client) -> None:
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login"}, "stringData": {"user": "root"}}
    here.apply(body)
    found = secrets.secret(client, kind(client, "secrets"), here.name, "login")
    assert found is not None
    assert found["data"] == {"user": ""}


def test_lists_in_pages(here: Here, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "PAGE_SIZE", 2)
    for name in "abcde":
        here.create(config(name, labels={"mine": "yes"}))
    found = [name_of(body) for body in client.list(kind(client, "cm"), here.name, labels="mine=yes")]
    assert found == [*"abcde"]


def test_changes_are_followed(here: Here, client: Client) -> None:
    seen = []
    listed = threading.Event()

    def change() -> None:
        assert listed.wait(SECONDS_MAX)
        here.create(config("app"))
        here.delete("ConfigMap", "app")

    helper = threading.Thread(target=change)
    helper.start()
    for found in follow(client, kind(client, "cm"), here.name, seconds=SECONDS_MAX, fields="metadata.name=app"):
        seen.append(found.type)
        listed.set()
        if found.type == "DELETED":
            break
    helper.join()
    assert seen == ["SYNCED", "ADDED", "DELETED"]


def test_a_refusal_has_its_causes(here: Here, client: Client) -> None:
    here.apply(config("app", {"color": "red"}), "one")
    with pytest.raises(RefusedRequest) as refused:
        client.apply(config("app", {"color": "blue"}), "two")
    assert [cause.field for cause in refused.value.refusal.causes] == [".data.color"]


def test_rights_are_reviewed_and_refusals_name_what_is_missing(here: Here, client: Client) -> None:
    assert client.may("create", "apps", "deployments", here.name)
    target = _target(here.api, here.name)
    nobody = Client(ClusterAccess(target.server, token=target.token, insecure=target.insecure, acts_as="nobody"))
    assert not nobody.may("create", "apps", "deployments", here.name)
    with pytest.raises(RefusedRequest):
        list(nobody.list(kind(nobody, "deploy"), here.name))
    assert [(one.verbs, one.resource, one.namespace) for one in nobody.denials] == [
        (("list",), "deployments", here.name)
    ]


def test_a_snapshot_is_whole(here: Here, client: Client) -> None:
    snapshot = take(client)
    assert not snapshot.denied
    assert snapshot.operators
    assert "Namespace" in snapshot.whole
    assert here.name in {name_of(body) for body in snapshot.objects if body["kind"] == "Namespace"}
    assert "apps/v1/Deployment" in snapshot.served
