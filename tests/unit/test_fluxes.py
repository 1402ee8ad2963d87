"""Staging of Flux manifests: the starting point, health checks, and assumptions."""

from __future__ import annotations

from pathlib import Path

import pytest

from seatrial.engines.flux.stage import Prepared, prepare
from seatrial.sources.flux.building import FluxSources, read_folder
from seatrial.sources.repos import Repos

SOURCE = """
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: platform, namespace: flux-system}
spec: {url: "https://git.example/platform"}
"""
RELEASE = """
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: operator, namespace: flux-system}
spec: {chart: {spec: {chart: operator, sourceRef: {kind: HelmRepository, name: charts}}}}
"""
CHECKS = """[
  {apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, name: gates.canal.example},
  {apiVersion: cert-manager.io/v1, kind: ClusterIssuer, name: ours}]"""
ISSUER = "apiVersion: cert-manager.io/v1\nkind: ClusterIssuer\nmetadata: {name: ours}\n"


def test_health_checks_of_cluster_scoped_objects_have_no_namespace(at: Path) -> None:
    _write(at / "apps/issuer.yaml", ISSUER)
    gathered = _gathered(at, _kustomization("apps", f"healthChecks: {CHECKS}"))
    [one] = gathered.fleet.kustomizations.values()
    named = ["CustomResourceDefinition/gates.canal.example", "ClusterIssuer/ours"]
    assert [str(ref) for ref in one.health_checks] == named


def test_objects_of_a_missing_chart_are_assumed_to_be_ready(at: Path) -> None:
    _write(at / "apps/release.yaml", RELEASE)
    _write(at / "apps/issuer.yaml", ISSUER)
    gathered = _gathered(at, _kustomization("apps", f"healthChecks: {CHECKS}"))
    [one] = gathered.fleet.kustomizations.values()
    assert [str(ref) for ref in one.health_checks] == ["ClusterIssuer/ours"]
    assert gathered.notes == (
        "flux: Kustomization/flux-system/apps waits for CustomResourceDefinition/gates.canal.example, which was not "
        "found; assuming it is ready",
    )
    assert gathered.not_rehearsed == (
        "HelmRelease/flux-system/operator (assumed to become Ready): its source is not in the input. To rehearse it: "
        "add --repo URL=PATH of its repository",
    )


def test_unknown_dependencies_and_cel_expressions_are_noted(at: Path) -> None:
    _write(at / "apps/issuer.yaml", ISSUER)
    checks = "[{apiVersion: a.example/v1, kind: X, current: 'true'}, {apiVersion: cert-manager.io/v1, current: 'true'}]"
    revision = "dep.status.lastAppliedRevision == self.status.lastAppliedRevision"
    more = f'dependsOn: [{{name: network, readyExpr: "{revision}"}}]\n  healthCheckExprs: {checks}'
    gathered = _gathered(at, _kustomization("apps", more))
    who = "flux: Kustomization/flux-system/apps"
    assert gathered.notes == (
        f"{who}: the status of X.a.example is not modelled; assuming its CEL expressions become true",
        f"{who}: the readyExpr for network reads status.lastAppliedRevision, which is not modelled; Ready is used "
        "instead",
        f"{who} depends on Kustomization/flux-system/network, which was not found; assuming it is Ready",
    )


def test_ignored_fields_of_a_helmrelease_are_noted(at: Path) -> None:
    _write(at / "charts/operator/Chart.yaml", "apiVersion: v2\nname: operator\nversion: 1.0.0\n")
    _write(at / "charts/operator/templates/a.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")
    spec = "spec: {postRenderers: [{kustomize: {images: []}}], chart: {spec: {chart: ./charts/operator, sourceRef: "
    local = RELEASE.partition("spec:")[0] + spec + "{kind: GitRepository, name: platform}}}}\n"
    _write(at / "apps/release.yaml", local)
    gathered = _gathered(at, _kustomization("apps"))
    words = "postRenderers are not run; objects are used as the chart renders them"
    assert gathered.notes == (f"flux: HelmRelease/flux-system/operator: {words}",)


@pytest.mark.parametrize(
    ("said", "timeout"),
    [("interval: 1h", "59m30s"), ("interval: 20s", "30s"), ("interval: 1h\n  timeout: 3m", "3m"), ("", "30s")],
)
def test_the_health_check_timeout_is_the_interval_minus_30_seconds(at: Path, said: str, timeout: str) -> None:
    _write(at / "apps/issuer.yaml", ISSUER)
    [one] = _gathered(at, _kustomization("apps", said or "prune: true")).fleet.kustomizations.values()
    assert one.timeout == timeout


def test_the_bootstrap_kustomization_is_the_starting_point(at: Path) -> None:
    _write(at / "apps/issuer.yaml", ISSUER)
    _write(at / "cluster/flux-system/sync.yaml", SOURCE + "---\n" + _kustomization("cluster"))
    _write(at / "cluster/apps.yaml", _kustomization("apps") + "---\n" + ISSUER.replace("ours", "another"))
    gathered = prepare(read_folder("cluster"), FluxSources(Repos({}), {}, "cluster", {}))
    roots = ["GitRepository/flux-system/platform", "Kustomization/flux-system/cluster"]
    assert [str(target.ref) for target in gathered.fleet.roots] == roots
    assert [ref.name for ref in gathered.fleet.kustomizations] == ["cluster", "apps"]


@pytest.fixture
def at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _gathered(at: Path, kustomization: str) -> Prepared:
    _write(at / "cluster/all.yaml", SOURCE + "---\n" + kustomization)
    return prepare(read_folder("cluster"), FluxSources(Repos({}), {}, "cluster", {}))


def _kustomization(name: str, more: str = "prune: true") -> str:
    spec = f"  path: ./{name}\n  sourceRef: {{kind: GitRepository, name: platform}}\n  {more}\n"
    meta = f"metadata: {{name: {name}, namespace: flux-system}}\n"
    return f"apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\n{meta}spec:\n{spec}"


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
