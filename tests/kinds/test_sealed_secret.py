"""SealedSecret: unsealed into the Secret it owns."""

from __future__ import annotations

from operatorcluster import OperatorCluster

GROUP = "bitnami.com"
SEALED = """
apiVersion: bitnami.com/v1alpha1
kind: SealedSecret
metadata: {name: db}
spec: {encryptedData: {password: AgB}, template: {metadata: {labels: {app: db}}}}
"""


def test_it_creates_a_secret_that_is_deleted_with_it() -> None:
    world = OperatorCluster("sealed-secrets")
    assert world.create(SEALED) == []
    made = world.object("Secret", "db")
    assert (made["data"], made["metadata"]["labels"]) == ({"password": ""}, {"app": "db"})
    assert world.status_of("SealedSecret", "db", "Synced", group=GROUP) == "True"
    assert world.delete("SealedSecret", "db", group=GROUP) == ""
    assert world.names("Secret") == []


def test_it_does_not_take_over_an_unmanaged_secret() -> None:
    world = OperatorCluster("sealed-secrets")
    assert world.create("{apiVersion: v1, kind: Secret, metadata: {name: db}, data: {user: YQ==}}", SEALED) == []
    words = 'Resource "db" already exists and is not managed by SealedSecret'
    assert world.said() == [f"SealedSecret/demo/db: {words}"]
    assert world.status_of("SealedSecret", "db", "Synced", group=GROUP) == f"False: failed update: {words}"
    assert world.object("Secret", "db")["data"] == {"user": "YQ=="}


def test_it_takes_over_a_secret_annotated_as_managed() -> None:
    world = OperatorCluster("sealed-secrets")
    marked = "{name: db, annotations: {sealedsecrets.bitnami.com/managed: 'true'}}"
    assert world.create(f"{{apiVersion: v1, kind: Secret, metadata: {marked}}}", SEALED) == []
    owners = world.object("Secret", "db")["metadata"]["ownerReferences"]
    assert [owner["kind"] for owner in owners] == ["SealedSecret"]
