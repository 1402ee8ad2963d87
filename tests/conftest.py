"""What all tests share: the flag that rewrites what stories expect, and the one that names a real API server."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

pytest_plugins = ("bothservers",)

# The same examples in every run, so that a change fails for what it changed. To search for new ones:
# pytest --hypothesis-profile default
# No clock fails a test: on a busy machine everything is slow.
settings.register_profile("same", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("same")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update", action="store_true", help="rewrite the expected blocks of scenarios in place")
    parser.addoption("--record", action="store_true", help="renew the recorded rehearsals of scenarios that have some")
    parser.addoption("--kubeconfig", metavar="FILE", help="hold the conformance tests also against this API server")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """How many bad stories the invariants find without the rules, after a run with stories."""
    if alone := sys.modules.get("alone"):
        found = alone.count(sorted((Path(__file__).parent / "scenarios").glob("*.md")))
        terminalreporter.write_line(f"invariants alone: {found} bad examples (unseen.yaml lists the others)")


@pytest.fixture(autouse=True)
def no_helm_on_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports name a helm on the PATH, which no test but those about it expects."""
    monkeypatch.setattr("seatrial.engines.helm.process.on_path", lambda name: "")


@pytest.fixture(autouse=True)
def no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test rehearses, except for those about the cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", os.devnull)


@pytest.fixture(scope="session")
def node_packages() -> Path:
    """The packages that programs in TypeScript need; a test that asks for them is skipped where there are none."""
    beside = Path(__file__).parents[1] / ".venv" / "node_modules"
    found = Path(os.environ.get("SEATRIAL_NODE_MODULES", beside))
    if not shutil.which("node") or not (found / "@pulumi" / "kubernetes").is_dir():
        pytest.skip("needs node 20 or later, and the packages that `make node` brings")
    return found


@pytest.fixture
def namespaces() -> None:
    """Skips if the kernel does not allow user namespaces."""
    if subprocess.run(["unshare", "--user", "--net", "--mount", "--pid", "--fork", "true"], check=False).returncode:
        pytest.skip("needs a kernel that lets everyone enter new namespaces")
