"""Which CRDs a chart that is not at hand is known to bring."""

from __future__ import annotations

import pytest

from seatrial.kinds.operators.charts import PLACES, brings_crds, installation, runs_operator
from seatrial.kinds.operators.olm import package_of
from seatrial.kinds.operators.table import table
from seatrial.model.release import AbsentChart
from seatrial.model.resource import Body


def test_every_line_names_a_place() -> None:
    assert {line.split()[1] for operator in table().values() for line in operator.brings} <= set(PLACES)


@pytest.mark.parametrize(
    ("chart", "repository"),
    [
        ("base", "https://charts.example"),
        ("base", ""),
        ("gatekeeper", "https://gogatekeeper.github.io/helm-gogatekeeper"),
        ("vault-secrets-operator", "https://ricoberger.github.io/helm-charts"),
        ("longhorn", "https://charts.rancher.io"),
        ("argo-cd", "https://charts.bitnami.com/bitnami"),
        ("metallb", "registry-1.docker.io/bitnamicharts"),
        ("keda", "file://../keda"),
    ],
)
def test_another_chart_of_the_same_name_is_not_known(chart: str, repository: str) -> None:
    assert installation(AbsentChart(chart, repository=repository)) is None


@pytest.mark.parametrize(
    ("chart", "version", "repository", "place"),
    [
        ("base", "1.23.0", "https://istio-release.storage.googleapis.com/charts", "crds"),
        ("base", "1.24.0", "https://istio-release.storage.googleapis.com/charts", "templates"),
        ("base", "", "https://istio-release.storage.googleapis.com/charts", "crds"),
        ("argo-cd", "5.1.0", "", "crds"),
        ("argo-cd", "10.1.1", "", "templates"),
        ("argo-workflows", "1.0.18", "", "hook"),
        ("sealed-secrets", "2.18.5", "https://bitnami-labs.github.io/sealed-secrets", "crds"),
    ],
)
def test_the_place_of_the_crds_depends_on_the_version(chart: str, version: str, repository: str, place: str) -> None:
    known = installation(AbsentChart(chart, version, repository))
    assert known is not None
    assert known.place == place


@pytest.mark.parametrize(("chart", "version"), [("metallb", "0.12.1"), ("traefik", "1.87.7"), ("crossplane", "v1.1.0")])
def test_versions_that_bring_none_or_were_not_read_are_not_known(chart: str, version: str) -> None:
    assert installation(AbsentChart(chart, version)) is None


@pytest.mark.parametrize(
    ("chart", "version", "values", "brings"),
    [
        ("kyverno", "2.7.0", {"installCRDs": False}, False),
        ("kyverno", "2.7.0", {"crds": {"install": False}}, True),
        ("kyverno", "", {"installCRDs": False}, False),
        ("kyverno", "", {}, True),
        ("kyverno", "3.2.0", {"crds": {"groups": {"kyverno": {"policies": False}}}}, False),
        ("external-secrets", "1.0.0", {"crds": {"createClusterSecretStore": False}}, False),
        ("external-secrets", "1.0.0", {"crds": {"conversion": {"enabled": False}}}, True),
        ("prometheus-operator-crds", "", {"crds": {"probes": {"enabled": False}}}, False),
        ("cert-manager", "v1.18.0", {}, False),
        ("cert-manager", "1.x", {"crds": {"enabled": True}}, True),
    ],
)
def test_values_decide(chart: str, version: str, values: Body, brings: bool) -> None:
    assert brings_crds(AbsentChart(chart, version, values=values)) is brings


def test_a_chart_can_leave_its_operator_out() -> None:
    assert runs_operator(AbsentChart("kube-prometheus-stack"))
    assert not runs_operator(AbsentChart("kube-prometheus-stack", values={"prometheusOperator": {"enabled": False}}))
    assert not runs_operator(AbsentChart("kube-prometheus-stack", all_values=False))
    assert not runs_operator(AbsentChart("eck-operator-crds"))


def test_crds_that_are_in_the_folder_in_some_versions_can_be_skipped() -> None:
    skipped = AbsentChart("argo-cd", "", skips_crds=True)
    assert not brings_crds(skipped)


@pytest.mark.parametrize(
    ("url", "operator"),
    [
        (
            "https://github.com/cert-manager/cert-manager/releases/download/v1.18.0/cert-manager.crds.yaml",
            "cert-manager",
        ),
        ("https://raw.githubusercontent.com/argoproj/argo-cd/stable/manifests/install.yaml", "argo-cd"),
        ("https://raw.githubusercontent.com/argoproj/argo-cd/stable/manifests/namespace-install.yaml", ""),
        ("https://raw.githubusercontent.com/argoproj/argo-cd/stable/notifications_catalog/install.yaml", ""),
        ("https://raw.githubusercontent.com/istio/istio/release-1.29/samples/addons/kiali.yaml", ""),
        ("https://raw.githubusercontent.com/rook/rook/release-1.20/deploy/examples/operator.yaml", ""),
    ],
)
def test_only_manifests_with_all_crds_are_known(url: str, operator: str) -> None:
    known = installation(AbsentChart("", url=url))
    assert (known.operator.name if known else "") == operator


def test_the_package_of_enterprisedb_is_for_kinds_of_another_group() -> None:
    subscription = {"apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription"}
    assert package_of({**subscription, "spec": {"name": "cloudnative-pg"}}) is table()["cloudnative-pg"]
    assert package_of({**subscription, "spec": {"name": "cloud-native-postgresql"}}) is None
