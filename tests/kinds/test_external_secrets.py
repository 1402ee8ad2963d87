"""External Secrets: what comes of an ExternalSecret, with its operator and without, and what goes with it."""

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


def test_without_its_operator_nothing_comes_of_an_external_secret() -> None:
    world = OperatorCluster("external-secrets")
    assert world.delete("Deployment", "external-secrets", "external-secrets", "apps") == ""
    assert world.create(TOKEN, STORE, external()) == []
    assert "status" not in world.object("ExternalSecret", "app", group=GROUP)
    assert world.names("Secret") == ["token"]


def test_a_secret_is_made_when_store_and_login_are_there_in_whatever_order_they_come() -> None:
    world = OperatorCluster("external-secrets")
    assert world.create(external()) == []
    assert world.said()[-1] == (
        'ExternalSecret/demo/app: could not get SecretStore "vault", secretstores.external-secrets.io "vault" not found'
    )
    assert world.create(STORE) == []
    assert world.told("SecretStore", "vault", group=GROUP) == "False InvalidProviderConfig: unable to create client"
    assert world.told("ExternalSecret", "app", group=GROUP) == (
        "False SecretSyncedError: could not get secret data from provider"
    )
    assert world.create(TOKEN) == []
    assert world.told("SecretStore", "vault", group=GROUP) == "True Valid: store validated"
    assert world.told("ExternalSecret", "app", group=GROUP) == "True SecretSynced: secret synced"
    assert world.object("Secret", "app-secret")["data"] == {"password": ""}


@pytest.mark.parametrize(("policy", "left"), [("Owner", []), ("Orphan", ["app-secret"])])
def test_a_secret_goes_with_its_external_secret_unless_it_is_an_orphan(policy: str, left: list[str]) -> None:
    world = OperatorCluster("external-secrets")
    assert world.create(TOKEN, STORE, external(policy)) == []
    assert world.names("Secret") == ["app-secret", "token"]
    assert world.delete("ExternalSecret", "app", group=GROUP) == ""
    assert world.names("Secret") == [*left, "token"]


def test_what_is_merged_is_not_made() -> None:
    world = OperatorCluster("external-secrets")
    assert world.create(TOKEN, STORE, external("Merge")) == []
    assert world.told("ExternalSecret", "app", group=GROUP) == (
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
def test_a_release_sets_its_finalizers(version: str, finalizers: list[str]) -> None:
    world = OperatorCluster(f"external-secrets@{version}")
    assert world.create(external()) == []
    assert world.object("ExternalSecret", "app", group=GROUP)["metadata"].get("finalizers", []) == finalizers


def test_an_external_secret_stays_when_its_operator_is_gone() -> None:
    world = OperatorCluster("external-secrets@1.0.0")
    assert world.create(TOKEN, STORE, external()) == []
    assert world.delete("Deployment", "external-secrets", "external-secrets", "apps") == ""
    assert world.delete("ExternalSecret", "app", group=GROUP) == ""
    assert "deletionTimestamp" in world.object("ExternalSecret", "app", group=GROUP)["metadata"]


@pytest.mark.parametrize(("key", "phase"), [("password", "Running"), ("other", "Pending")])
def test_a_pod_finds_the_keys_that_are_named(key: str, phase: str) -> None:
    world = OperatorCluster("external-secrets")
    assert world.create(TOKEN, STORE, external(), POD.replace("KEY", key)) == []
    assert world.object("Pod", "app")["status"]["phase"] == phase


def test_a_pod_finds_any_key_of_what_is_copied_whole() -> None:
    world = OperatorCluster("external-secrets")
    whole = external().replace(
        "data: [{secretKey: password, remoteRef: {key: app}}]", "dataFrom: [{extract: {key: a}}]"
    )
    assert world.create(TOKEN, STORE, whole, POD.replace("KEY", "whatever")) == []
    assert world.object("Pod", "app")["status"]["phase"] == "Running"


def test_a_template_says_which_keys_there_are() -> None:
    world = OperatorCluster("external-secrets")
    template = "template: {type: kubernetes.io/tls, data: {tls.crt: x, tls.key: y}, metadata: {labels: {a: b}}}"
    text = external().replace("creationPolicy: Owner", template)
    assert world.create(TOKEN, STORE, text) == []
    made = world.object("Secret", "app-secret")
    assert (made["type"], sorted(made["data"])) == ("kubernetes.io/tls", ["tls.crt", "tls.key"])
    assert made["metadata"]["labels"]["a"] == "b"


def test_a_store_for_some_namespaces_lets_the_others_wait() -> None:
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


def test_one_for_the_whole_cluster_makes_one_in_each_namespace() -> None:
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


def test_waiting_for_a_pod_moves_whoever_makes_its_secret() -> None:
    """Lazy: nothing moves but what is waited for, and what that needs."""
    world = OperatorCluster("external-secrets", schedule="lazy")
    assert world.create(TOKEN, STORE, external(), POD.replace("KEY", "password")) == []
    assert world.get("Secret", "app-secret") is None
    world.cluster.awaits("someone", [Ref("Pod", "demo", "app")])
    assert world.object("Pod", "app")["status"]["phase"] == "Running"
    assert world.acts("external-secrets") == [
        "changed ExternalSecret/demo/app",
        "created Secret/demo/app-secret",
    ]


def test_a_push_secret_needs_what_it_pushes() -> None:
    world = OperatorCluster("external-secrets")
    push = """
    apiVersion: external-secrets.io/v1alpha1
    kind: PushSecret
    metadata: {name: push}
    spec: {secretStoreRefs: [{name: vault}], selector: {secret: {name: made-elsewhere}}}
    """
    assert world.create(TOKEN, STORE, push) == []
    assert world.told("PushSecret", "push", group=GROUP) == 'False Errored: could not get Secret "made-elsewhere"'
    assert world.create("{apiVersion: v1, kind: Secret, metadata: {name: made-elsewhere}}") == []
    assert world.told("PushSecret", "push", group=GROUP) == "True Synced: PushSecret synced successfully"


@pytest.mark.parametrize(("version", "served"), [("0.16.2", True), ("0.17.0", False), ("1.0.0", False)])
def test_a_version_that_a_release_no_longer_serves_is_not_found(version: str, served: bool) -> None:
    world = OperatorCluster(f"external-secrets@{version}")
    assert (world.cluster.discovery.find(GROUP, "v1beta1", "externalsecrets") is not None) == served
