"""Tests with the fixture `here` run against the embedded API, and against a real API server if one is given.

A real one is given by `--kubeconfig FILE`, by SEATRIAL_REAL_KUBECONFIG, or by KUBEBUILDER_ASSETS: a folder with etcd,
kube-apiserver and optionally kube-controller-manager, which are started on loopback.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from apiclient import Api, from_kubeconfig
from arms import Arm, Here
from realserver import real_server

from seatrial.cluster.cluster import Cluster
from seatrial.cluster.server.http import ApiServer

EMBEDDED, REAL = "embedded", "real"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "arm" in metafunc.fixturenames:
        given = [REAL] if is_given(metafunc.config) else []
        metafunc.parametrize("arm", [EMBEDDED, *given], indirect=True, scope="session")


def is_given(config: pytest.Config) -> bool:
    return bool(_kubeconfig(config) or os.environ.get("KUBEBUILDER_ASSETS"))


@pytest.fixture(scope="session")
def arm(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Arm]:
    if request.param == EMBEDDED:
        cluster = Cluster()
        with ApiServer(cluster) as server, Api(server.url) as api:
            yield Arm(api, cluster)
        return
    if file := _kubeconfig(request.config):
        with from_kubeconfig(Path(file)) as api:
            yield Arm(api)
        return
    with real_server(Path(os.environ["KUBEBUILDER_ASSETS"]), tmp_path_factory.mktemp("real")) as api:
        yield Arm(api)


@pytest.fixture
def here(arm: Arm, request: pytest.FixtureRequest) -> Iterator[Here]:
    """A namespace for each test."""
    if request.node.get_closest_marker("needs_controllers") and not arm.has_controllers:
        pytest.skip("the real API server that was given has no controller manager beside it")
    found = arm.new_namespace()
    yield found
    found.api.delete(f"/api/v1/namespaces/{found.name}")


@pytest.fixture(scope="session")
def kubectl_binary() -> str:
    found = shutil.which("kubectl")
    if found is None:
        pytest.skip("there is no kubectl on the PATH")
    return found


def _kubeconfig(config: pytest.Config) -> str:
    return str(config.getoption("--kubeconfig") or os.environ.get("SEATRIAL_REAL_KUBECONFIG") or "")
