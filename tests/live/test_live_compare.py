"""Where a cluster differs from what was rehearsed, and the report about it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from faultproxy import FOREVER, Fault
from worlds import World, deployed_shop

from seatrial.cli import main

CHART = """
apiVersion: v1
kind: Secret
metadata: {name: shop-login}
stringData: {password: correct-horse-battery, user: root}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: shop}
data: {color: red}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop}
spec:
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec: {containers: [{name: shop, image: "shop:1", envFrom: [{secretRef: {name: shop-login}}]}]}
"""


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """A cluster in which Helm has deployed the chart."""
    with deployed_shop(tmp_path, CHART) as found:
        yield found


def compared(folder: Path, *more: str) -> int:
    return main(["compare-live", str(folder / "shop"), "--kubeconfig", str(folder / "kubeconfig"), *more])


def test_a_cluster_like_the_rehearsal(world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert compared(tmp_path) == 0
    assert capsys.readouterr().out == "helm upgrade succeeds in the rehearsal; no differences to the cluster\n"


def test_a_deployment_is_compared_with_its_rehearsal_from_the_state_before(
    world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = str(tmp_path / "before.json")
    chart, config = str(tmp_path / "shop"), str(tmp_path / "kubeconfig")
    assert main(["snapshot", chart, "--kubeconfig", config, "-o", before]) == 0
    deployment = world.client.get(world.kind("deploy"), "default", "shop")
    assert deployment is not None
    deployment["spec"]["template"]["spec"]["containers"][0]["image"] = "shop:evil"
    world.client.apply({**deployment, "metadata": {"name": "shop", "namespace": "default"}}, "someone", force=True)
    world.cluster.settle()
    world.client.delete(world.kind("cm"), "default", "shop")
    world.client.delete(world.kind("secrets"), "default", "shop-login")
    world.put(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "shop-login", "namespace": "default"},
            "stringData": {"password": "correct-horse-battery"},
        }
    )
    capsys.readouterr()
    assert compared(tmp_path, "--assume", before, "-o", str(tmp_path / "report.json")) == 1
    assert capsys.readouterr().out.splitlines() == [
        "presence   ConfigMap/default/shop: rehearsed present, live absent",
        "field      Deployment/default/shop spec.template.spec.containers.shop.image: rehearsed shop:1, live shop:evil",
        "field      Secret/default/shop-login data.user: rehearsed present, live nothing",
        "field      Secret/default/shop-login metadata.annotations.meta.helm.sh/release-name: rehearsed shop, "
        "live nothing",
        "field      Secret/default/shop-login metadata.annotations.meta.helm.sh/release-namespace: rehearsed default, "
        "live nothing",
        "helm upgrade succeeds in the rehearsal; 5 differences to the cluster",
    ]
    text = (tmp_path / "report.json").read_text()
    assert sorted(json.loads(text)) == ["differences", "rehearsal", "seatrial", "snapshot"]


def test_a_report_has_no_values_of_secrets(world: World, tmp_path: Path) -> None:
    world.client.delete(world.kind("cm"), "default", "shop")
    assert compared(tmp_path, "-o", str(tmp_path / "report.json")) == 1
    text = (tmp_path / "report.json").read_text()
    assert "correct-horse" not in text
    assert "Y29ycmVjdC1ob3JzZS1iYXR0ZXJ5" not in text


def test_a_failed_revision_is_a_difference(world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = "sh.helm.release.v1.shop.v1"
    labels = {"name": "shop", "owner": "helm", "version": "1", "status": "failed"}
    patch = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": "default", "labels": labels}}
    world.client.apply(patch, "someone", force=True)
    assert compared(tmp_path) == 1
    assert "outcome    helm upgrade: rehearsed ok, live failed" in capsys.readouterr().out


def test_what_may_not_be_read_is_not_compared(world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    world.proxy.faults.append(Fault("/configmaps/shop", 403, times=FOREVER))
    assert compared(tmp_path) == 1
    shown = capsys.readouterr().out
    assert "no differences to the cluster" in shown
    assert "get configmaps in namespace default" in shown
