"""How long the real Helm takes on the embedded API, and `seatrial check` on the examples, beside rendering alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bench import Figure, seconds
from seatrial import helmsdk
from seatrial.cluster.cluster import Cluster
from seatrial.cluster.http import Server

EXAMPLES = Path(__file__).parent.parent / "examples"
TIMES = 5


def figures() -> Iterator[Figure]:
    yield from _helm()


def _helm() -> Iterator[Figure]:
    old = helmsdk.Chart.load(str(EXAMPLES / "basic-app/v1"))
    new = helmsdk.Chart.load(str(EXAMPLES / "basic-app/v2"))
    rounds = [_install_and_upgrade(old, new) for _ in range(TIMES)]
    yield Figure("one real Helm install", f"{min(install for install, _ in rounds):.3f} s")
    yield Figure("one real Helm upgrade", f"{min(upgrade for _, upgrade in rounds):.3f} s")


def _install_and_upgrade(old: helmsdk.Chart, new: helmsdk.Chart) -> tuple[float, float]:
    with Server(Cluster(), actor="helm") as server:
        config = helmsdk.Config(kubeconfig_content=server.kubeconfig(), namespace="default")
        context = helmsdk.HelmContext()
        install = seconds(lambda: helmsdk.install(config, context, old, "demo", {}, namespace="default"))
        upgrade = seconds(lambda: helmsdk.upgrade(config, context, new, "demo", {}, namespace="default"))
        config.close()
        context.close()
    return install, upgrade
