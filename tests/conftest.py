"""What all tests share: the flag that rewrites what stories expect, and the one that names a real API server."""

from __future__ import annotations

import pytest

pytest_plugins = ("bothservers",)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update", action="store_true", help="rewrite the expected blocks of scenarios in place")
    parser.addoption("--kubeconfig", metavar="FILE", help="hold the conformance tests also against this API server")
