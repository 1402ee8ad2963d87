"""A real Flux in the sandbox, compared with the simulated one by `--compare-engines`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from seatrial.check import run_both
from seatrial.model.options import CheckOptions
from seatrial.model.timeline import Schedule

VARIABLE = "SEATRIAL_FLUX_BINARIES"
FOLDER = os.environ.get(VARIABLE, "")
CLUSTER = """
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: platform, namespace: flux-system}
spec: {interval: 1m, url: "https://git.example/platform"}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: base, namespace: flux-system}
spec: {interval: 1h, prune: true, wait: true, path: ./base, sourceRef: {kind: GitRepository, name: platform}}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: apps, namespace: flux-system}
spec:
  interval: 1h
  prune: true
  path: ./apps
  sourceRef: {kind: GitRepository, name: platform}
  dependsOn: [{name: base}]
"""
RELEASE = """
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: web, namespace: shop}
spec:
  interval: 10m
  chart: {spec: {chart: ./charts/web, sourceRef: {kind: GitRepository, name: platform, namespace: flux-system}}}
"""
WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: "web:1"}]}}
"""
FILES = {
    "cluster/all.yaml": CLUSTER,
    "base/shop.yaml": f"apiVersion: v1\nkind: Namespace\nmetadata: {{name: shop}}\n---{RELEASE}",
    "apps/settings.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: shop}\n",
    "charts/web/Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n",
    "charts/web/templates/web.yaml": WEB,
}

pytestmark = pytest.mark.skipif(not FOLDER, reason=f"{VARIABLE} is not set to a folder with the executables of Flux")


@pytest.mark.parametrize("schedule", ["ordinary", "eager"])
def test_kustomizations_and_a_release_go_the_same_with_both(schedule: Schedule, tmp_path: Path) -> None:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    repos = (f"https://git.example/platform={tmp_path}",)
    given = CheckOptions((str(tmp_path / "cluster"),), repos=repos, engine_binaries=(f"flux={FOLDER}",))
    one, found = run_both(given, schedule)
    assert one.rehearsal.engine.real
    assert [step.outcome for step in one.rehearsal.steps] == ["ok", "ok", "ok"]
    assert found.differences == ()
