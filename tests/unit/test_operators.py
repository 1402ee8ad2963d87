"""The table of operators: releases, CRDs, and workloads."""

from __future__ import annotations

import tomllib
from importlib.resources import files

import pytest

from seatrial.kinds.core.crd import api_versions
from seatrial.kinds.operators.manifests import crds, workload_of
from seatrial.kinds.operators.patterns import parse
from seatrial.kinds.operators.table import OperatorEntry, find, table
from seatrial.kinds.operators.table import workload_of as whose
from seatrial.kinds.tables.shapes import schema_of
from seatrial.model.resource import Body
from seatrial.model.trial import Operator as Assumed
from seatrial.plan.prerequisites.declared import assumed_objects


@pytest.mark.parametrize("operator", table().values(), ids=lambda operator: operator.name)
def test_every_operator_has_a_source_and_is_consistent(operator: OperatorEntry) -> None:
    assert operator.source.startswith("github.com/")
    assert bool(operator.releases) != operator.platform
    for kind in operator.kinds:
        assert kind.plural == kind.plural.lower()
        assert any(version.stored_since is not None for version in kind.versions), kind.kind
        for pattern in (*kind.makes, *kind.needs):
            parse(pattern)
    assert set(operator.creates) <= {"crds", "webhooks"}
    assert bool(operator.service_variable or operator.webhook_labels) <= ("webhooks" in operator.creates)
    assert len({(workload.image, workload.argument) for workload in operator.workloads}) == len(operator.workloads)


def test_every_table_entry_is_about_a_listed_kind() -> None:
    """A misspelt name in the table would be ignored."""
    text = files("seatrial.kinds.operators").joinpath("operators.toml").read_text()
    wrong = [
        f"{name}.{part}.{kind}"
        for name, entry in tomllib.loads(text).items()
        for part in ("finalizers", "makes", "needs")
        for kind in entry.get(part, {})
        if kind.partition(".")[0] not in {known.kind for known in table()[name].kinds}
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("release", "served", "stored"),
    [
        ("0.15.1", ["v1alpha1", "v1beta1"], "v1beta1"),
        ("0.16.0", ["v1beta1", "v1"], "v1"),
        ("0.16.2", ["v1beta1", "v1"], "v1"),
        ("0.17.0", ["v1"], "v1"),
        ("v1.0.0", ["v1"], "v1"),
        ("", ["v1"], "v1"),
    ],
)
def test_external_secrets_serves_v1beta1_until_0_17(release: str, served: list[str], stored: str) -> None:
    found = [body for body in crds(find("external-secrets", release), release) if _kind(body) == "ExternalSecret"]
    versions = found[0]["spec"]["versions"]
    assert [version["name"] for version in versions] == served
    assert [version["name"] for version in versions if version["storage"]] == [stored]


def test_a_crd_has_its_upstream_names_and_scope() -> None:
    found = {body["metadata"]["name"]: body for body in crds(find("cert-manager", "1.18.0"), "1.18.0")}
    typed = {"openAPIV3Schema": schema_of("cert-manager.io", "ClusterIssuer")}
    assert found["clusterissuers.cert-manager.io"] == {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "clusterissuers.cert-manager.io"},
        "spec": {
            "group": "cert-manager.io",
            "scope": "Cluster",
            "names": {
                "kind": "ClusterIssuer",
                "listKind": "ClusterIssuerList",
                "plural": "clusterissuers",
                "singular": "clusterissuer",
                "shortNames": ["ciss"],
            },
            "versions": [
                {"name": "v1", "served": True, "storage": True, "schema": typed, "subresources": {"status": {}}}
            ],
        },
    }


def test_install_manifests_are_in_creation_order() -> None:
    kinds = [body["kind"] for body in assumed_objects(Assumed("metallb"))]
    assert list(dict.fromkeys(kinds)) == [
        "Namespace",
        "CustomResourceDefinition",
        "Deployment",
        "DaemonSet",
        "Service",
        "ValidatingWebhookConfiguration",
    ]


def test_capabilities_list_the_served_versions() -> None:
    reported = api_versions(assumed_objects(Assumed("sealed-secrets")))
    assert reported == ["bitnami.com/v1alpha1", "bitnami.com/v1alpha1/SealedSecret"]


@pytest.mark.parametrize(
    ("image", "arguments", "owner"),
    [
        ("ghcr.io/external-secrets/external-secrets:v1.0.0", [], "external-secrets controller"),
        (
            "registry.corp:5000/mirror/external-secrets@sha256:0",
            ["webhook", "--port=1"],
            "external-secrets webhook",
        ),
        ("external-secrets", ["certcontroller"], "external-secrets certificates"),
        ("quay.io/argoproj/argocd:v3", ["/usr/local/bin/argocd-repo-server"], "argo-cd repository"),
        ("quay.io/metallb/controller:v0.14", [], "metallb controller"),
        ("ghcr.io/tektoncd/pipeline/controller-10a3e32792f33651396d02b6855a6e36:v1", [], "tekton controller"),
        ("gcr.io/tekton-releases/github.com/tektoncd/pipeline/cmd/controller:v0.50", [], "tekton controller"),
        ("gcr.io/knative-releases/knative.dev/serving/cmd/controller@sha256:0", [], "knative-serving controller"),
        ("example.com/shop/controller:1", [], None),
        ("nginx", [], None),
    ],
)
def test_a_workload_is_identified_by_its_image(image: str, arguments: list[str], owner: str | None) -> None:
    body = workload_of("some", "ops", image)
    body["spec"]["template"]["spec"]["containers"][0]["args"] = arguments
    found = whose(body)
    assert (f"{found[0].name} {found[1].role}" if found else None) == owner


def _kind(body: Body) -> str:
    return str(body["spec"]["names"]["kind"])
