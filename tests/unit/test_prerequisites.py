"""Prerequisites: CRDs, operators and objects that a release needs and does not contain."""

from __future__ import annotations

from pathlib import Path

import pytest

from seatrial.model.release import Release
from seatrial.model.trial import Operator
from seatrial.plan.prerequisites import needed
from seatrial.plan.prerequisites.declared import assumed_objects, described_in
from seatrial.sources.manifests.reading import read_manifests

EXTERNAL = """
apiVersion: external-secrets.io/VERSION
kind: ExternalSecret
metadata: {name: app}
spec: {secretStoreRef: {name: vault, kind: ClusterSecretStore}, target: {name: app-secret}}
"""
POD = """
apiVersion: v1
kind: Pod
metadata: {name: app}
spec: {containers: [{name: main, image: "app:1", envFrom: [{secretRef: {name: app-secret}}]}]}
"""


def read(tmp_path: Path, text: str) -> list[Release]:
    file = tmp_path / "release.yaml"
    file.write_text(text)
    return [read_manifests(str(file), namespace="demo")]


@pytest.mark.parametrize(
    ("version", "installed"),
    [("v1", "external-secrets installs it"), ("v1beta1", "external-secrets installs it (v1beta1 before 0.17.0)")],
)
def test_a_missing_crd_names_the_operator_that_installs_it_and_until_which_version(
    tmp_path: Path, version: str, installed: str
) -> None:
    found = needed.crds(read(tmp_path, EXTERNAL.replace("VERSION", version)))
    assert [prerequisite.object for _, prerequisite in found] == [
        "CustomResourceDefinition/clustersecretstores.external-secrets.io",
        "CustomResourceDefinition/externalsecrets.external-secrets.io",
    ]
    assert [prerequisite.why for _, prerequisite in found] == [
        "ExternalSecret/demo/app needs an object of this kind; external-secrets installs it",
        f"ExternalSecret/demo/app is of this kind (external-secrets.io/{version} must be served); {installed}",
    ]
    store, external = (body["spec"] for body, _ in found)
    assert (store["scope"], [entry["name"] for entry in store["versions"]]) == ("Cluster", ["v1"])
    assert (external["scope"], [entry["name"] for entry in external["versions"]]) == ("Namespaced", [version])


def test_an_unknown_kind_gets_a_crd_for_the_used_version(tmp_path: Path) -> None:
    found = needed.crds(read(tmp_path, "{apiVersion: canal.example/v2, kind: Lock, metadata: {name: north}}"))
    assert [(body["metadata"]["name"], prerequisite.why) for body, prerequisite in found] == [
        ("locks.canal.example", "Lock/demo/north is of this kind (canal.example/v2 must be served)")
    ]


def test_objects_declared_in_the_trial_are_not_prerequisites(tmp_path: Path) -> None:
    given = assumed_objects(Operator("external-secrets", "1.0.0"))
    releases = read(tmp_path, EXTERNAL.replace("VERSION", "v1beta1"))
    assert needed.crds(releases, (), given) == []
    assert needed.operators(releases, given) == []


def test_an_operator_that_reconciles_a_used_kind_is_assumed_to_run(tmp_path: Path) -> None:
    found = needed.operators(read(tmp_path, EXTERNAL.replace("VERSION", "v1")))
    assert [(prerequisite.object, prerequisite.why, prerequisite.operator) for _, prerequisite in found] == [
        (
            "Deployment/external-secrets/external-secrets",
            "it reconciles ExternalSecret/demo/app",
            "external-secrets",
        )
    ]
    assert [body["metadata"]["namespace"] for body, _ in found] == ["kube-system"]


def test_an_operator_that_the_release_installs_is_not_assumed_to_run(tmp_path: Path) -> None:
    operator = """---
    apiVersion: apps/v1
    kind: Deployment
    metadata: {name: eso}
    spec: {template: {spec: {containers: [{name: main, image: "mirror.corp/external-secrets:v1.0.0"}]}}}
    """
    text = EXTERNAL.replace("VERSION", "v1") + operator.replace("\n    ", "\n")
    assert needed.operators(read(tmp_path, text)) == []


def test_a_missing_store_is_assumed_and_a_secret_that_the_operator_creates_is_not(tmp_path: Path) -> None:
    releases = read(tmp_path, EXTERNAL.replace("VERSION", "v1") + "---" + POD)
    crds = [body for body, _ in needed.crds(releases)]
    assert [body for body, _ in needed.objects(releases, crds)] == [
        {
            "apiVersion": "external-secrets.io/v1",
            "kind": "ClusterSecretStore",
            "metadata": {"name": "vault"},
            "spec": {},
        }
    ]
    alone = read(tmp_path, POD)
    assert [prerequisite.object for _, prerequisite in needed.objects(alone)] == ["Secret/demo/app-secret"]


def test_a_secret_that_a_described_operator_creates_is_not_assumed(tmp_path: Path) -> None:
    described = Operator("sync", kinds=("RemoteSecret.sync.example",), produces={"secret": "spec.target.name"})
    remote = (
        "{apiVersion: sync.example/v1, kind: RemoteSecret, metadata: {name: a}, spec: {target: {name: app-secret}}}"
    )
    releases = read(tmp_path, f"{remote}\n---{POD}")
    given = assumed_objects(described)
    assert needed.objects(releases, given, described_in(given)) == []


def test_assumed_service_accounts_and_roles_have_all_rights(tmp_path: Path) -> None:
    text = """
apiVersion: v1
kind: Pod
metadata: {name: app}
spec: {serviceAccountName: theirs, containers: []}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: app}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: readers}
subjects: [{kind: ServiceAccount, name: default}]
"""
    assert [body for body, _ in needed.objects(read(tmp_path, text))] == [
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": "readers"},
            "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}],
        },
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"annotations": {"seatrial.dev/any-right": "assumed"}, "name": "theirs", "namespace": "demo"},
        },
    ]
