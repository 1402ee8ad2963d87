"""External Secrets: what an ExternalSecret creates, with and without its operator, and what is deleted with it."""

from __future__ import annotations

import pytest
from operatorcluster import OperatorCluster

from seatrial.model.resource import Ref

GROUP = "external-secrets.io"
STORE = """
apiVersion: external-secrets.io/v1
kind: SecretStore
metadata: {name: vault}
spec: {provider: {vault: {server: "https://vault", auth: {tokenSecretRef: {name: token, key: t}}}}}
"""
TOKEN = """
apiVersion: v1
kind: Secret
metadata: {name: token}
"""
EXTERNAL = """
apiVersion: external-secrets.io/v1
kind: ExternalSecret
metadata: {name: app}
spec:
  secretStoreRef: {name: vault}
  target: {name: app-secret, creationPolicy: POLICY}
  data: [{secretKey: password, remoteRef: {key: app}}]
"""
POD = """
apiVersion: v1
kind: Pod
metadata: {name: app}
spec:
  containers: [{name: main, image: "app:1", env: [{name: P, valueFrom: {secretKeyRef: {name: app-secret, key: KEY}}}]}]
"""


def external(policy: str = "Owner") -> str:
    return EXTERNAL.replace("POLICY", policy)


def test_without_its_operator_an_external_secret_creates_nothing() -> None:
    world = OperatorCluster("external-secrets")
    assert world.delete("Deployment", "external-secrets", "external-secrets", "apps") == ""
    assert world.create(TOKEN, STORE, external()) == []
    assert "status" not in world.object("ExternalSecret", "app", group=GROUP)
    assert world.names("Secret") == ["token"]


def test_a_secret_is_created_once_store_and_credentials_exist_in_any_order() -> None:
    world = OperatorCluster("external-secrets")
    assert world.create(external()) == []
    assert world.said()[-1] == (
        'ExternalSecret/demo/app: could not get SecretStore "vault", secretstores.external-secrets.io "vault" not found'
    )
    assert world.create(STORE) == []
    assert (
        world.status_of("SecretStore", "vault", group=GROUP) == "False InvalidProviderConfig: unable to create client"
    )
    assert world.status_of("ExternalSecret", "app", group=GROUP) == (
        "False SecretSyncedError: could not get secret data from provider"
    )
    assert world.create(TOKEN) == []
    assert world.status_of("SecretStore", "vault", group=GROUP) == "True Valid: store validated"
    assert world.status_of("ExternalSecret", "app", group=GROUP) == "True SecretSynced: secret synced"
    assert world.object("Secret", "app-secret")["data"] == {"password": ""}


@pytest.mark.parametrize(("policy", "left"), [("Owner", []), ("Orphan", ["app-secret"])])
def test_a_secret_is_deleted_with_its_external_secret_unless_orphaned(policy: str, left: list[str]) -> None:
    world = OperatorCluster("external-secrets")
    assert world.create(TOKEN, STORE, external(policy)) == []
    assert world.names("Secret") == ["app-secret", "token"]
    assert world.delete("ExternalSecret", "app", group=GROUP) == ""
    assert world.names("Secret") == [*left, "token"]


def test_merge_does_not_create_the_secret() -> None:
    world = OperatorCluster("external-secrets")
    assert world.create(TOKEN, STORE, external("Merge")) == []
    assert world.status_of("ExternalSecret", "app", group=GROUP) == (
        "True SecretMissing: secret will not be created due to CreationPolicy=Merge"
    )
    assert world.create("{apiVersion: v1, kind: Secret, metadata: {name: app-secret}, data: {user: YQ==}}") == []
    made = world.object("Secret", "app-secret")
    assert made["data"] == {"password": "", "user": "YQ=="}
    assert "ownerReferences" not in made["metadata"]


@pytest.mark.parametrize(
    ("version", "finalizers"),
    [("0.19.0", []), ("1.0.0", ["externalsecrets.external-secrets.io/externalsecret-cleanup"])],
)
def test_finalizers_depend_on_the_release(version: str, finalizers: list[str]) -> None:
    world = OperatorCluster(f"external-secrets@{version}")
    assert world.create(external()) == []
    assert world.object("ExternalSecret", "app", group=GROUP)["metadata"].get("finalizers", []) == finalizers


def test_an_external_secret_is_not_deleted_without_its_operator() -> None:
    world = OperatorCluster("external-secrets@1.0.0")
    assert world.create(TOKEN, STORE, external()) == []
    assert world.delete("Deployment", "external-secrets", "external-secrets", "apps") == ""
    assert world.delete("ExternalSecret", "app", group=GROUP) == ""
    assert "deletionTimestamp" in world.object("ExternalSecret", "app", group=GROUP)["metadata"]


@pytest.mark.parametrize(("key", "phase"), [("password", "Running"), ("other", "Pending")])
def test_a_pod_finds_the_named_keys(key: str, phase: str) -> None:
    world = OperatorCluster("external-secrets")
    assert world.create(TOKEN, STORE, external(), POD.replace("KEY", key)) == []
    assert world.object("Pod", "app")["status"]["phase"] == phase


def test_a_pod_finds_any_key_with_data_from() -> None:
    world = OperatorCluster("external-secrets")
    whole = external().replace(
        "data: [{secretKey: password, remoteRef: {key: app}}]", "dataFrom: [{extract: {key: a}}]"
    )
    assert world.create(TOKEN, STORE, whole, POD.replace("KEY", "whatever")) == []
    assert world.object("Pod", "app")["status"]["phase"] == "Running"


def test_a_template_defines_the_keys() -> None:
    world = OperatorCluster("external-secrets")
    template = "template: {type: kubernetes.io/tls, data: {tls.crt: x, tls.key: y}, metadata: {labels: {a: b}}}"
    text = external().replace("creationPolicy: Owner", template)
    assert world.create(TOKEN, STORE, text) == []
    made = world.object("Secret", "app-secret")
    assert (made["type"], sorted(made["data"])) == ("kubernetes.io/tls", ["tls.crt", "tls.key"])
    assert made["metadata"]["labels"]["a"] == "b"


def test_a_store_with_conditions_denies_other_namespaces() -> None:
    world = OperatorCluster("external-secrets")
    store = """
    apiVersion: external-secrets.io/v1
    kind: ClusterSecretStore
    metadata: {name: vault}
    spec: {conditions: [{namespaces: [prod]}]}
    """
    named = external().replace("{name: vault}", "{name: vault, kind: ClusterSecretStore}")
    assert world.create(store, named) == []
    assert world.said()[-1] == (
        "ExternalSecret/demo/app: "
        'using cluster store "vault" is not allowed from namespace "demo": denied by spec.condition'
    )


def test_a_cluster_external_secret_creates_one_in_each_namespace() -> None:
    world = OperatorCluster("external-secrets")
    text = """
    apiVersion: external-secrets.io/v1
    kind: ClusterExternalSecret
    metadata: {name: pull}
    spec:
      externalSecretName: pull-secret
      namespaceSelectors: [{matchLabels: {kubernetes.io/metadata.name: demo}}]
      externalSecretSpec: {secretStoreRef: {name: vault}, target: {name: pull}, dataFrom: [{extract: {key: k}}]}
    """
    assert world.create(TOKEN, STORE, text) == []
    assert world.names("ExternalSecret", GROUP) == ["pull-secret"]
    assert "pull" in world.names("Secret")


def test_waiting_for_a_pod_runs_the_operator_that_creates_its_secret() -> None:
    """Slow cluster: only the awaited object and what it needs make progress."""
    world = OperatorCluster("external-secrets", schedule="lazy")
    assert world.create(TOKEN, STORE, external(), POD.replace("KEY", "password")) == []
    assert world.get("Secret", "app-secret") is None
    world.cluster.awaits([Ref("Pod", "demo", "app")])
    assert world.object("Pod", "app")["status"]["phase"] == "Running"
    assert world.acts("external-secrets") == [
        "changed ExternalSecret/demo/app",
        "created Secret/demo/app-secret",
    ]


def test_a_push_secret_needs_its_secret() -> None:
    world = OperatorCluster("external-secrets")
    push = """
    apiVersion: external-secrets.io/v1alpha1
    kind: PushSecret
    metadata: {name: push}
    spec: {secretStoreRefs: [{name: vault}], selector: {secret: {name: made-elsewhere}}}
    """
    assert world.create(TOKEN, STORE, push) == []
    assert world.status_of("PushSecret", "push", group=GROUP) == 'False Errored: could not get Secret "made-elsewhere"'
    assert world.create("{apiVersion: v1, kind: Secret, metadata: {name: made-elsewhere}}") == []
    assert world.status_of("PushSecret", "push", group=GROUP) == "True Synced: PushSecret synced successfully"


@pytest.mark.parametrize(("version", "served"), [("0.16.2", True), ("0.17.0", False), ("1.0.0", False)])
def test_a_version_that_a_release_does_not_serve_is_not_found(version: str, served: bool) -> None:
    world = OperatorCluster(f"external-secrets@{version}")
    assert (world.cluster.discovery.find(GROUP, "v1beta1", "externalsecrets") is not None) == served
