"""A client that has locked up differs from one that gets no core, although seconds pass for both."""

from __future__ import annotations

import time
import urllib.request
from collections.abc import Iterator

import pytest

from seatrial.cluster.cluster import Cluster
from seatrial.cluster.server.http import ApiServer
from seatrial.play import over_http
from seatrial.play.over_http import OverHttp

PATIENCE_SECONDS = 300.0


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with ApiServer(Cluster()) as server:
        yield server


def test_a_client_that_was_not_scheduled_for_a_minute_has_not_locked_up(server: ApiServer) -> None:
    api = OverHttp(server.cluster, server)
    _pass_a_minute(server)
    api.stuck(PATIENCE_SECONDS)
    assert not api.silent()


def test_a_client_that_asks_again_after_a_minute_has_not_locked_up(server: ApiServer) -> None:
    api = OverHttp(server.cluster, server)
    _pass_a_minute(server)
    _look(api)
    urllib.request.urlopen(f"{server.url}/api/v1/namespaces").close()
    _pass_a_minute(server)
    api.stuck(PATIENCE_SECONDS)
    assert not api.silent()


def test_a_client_that_is_found_idle_again_and_again_has_locked_up(server: ApiServer) -> None:
    api = OverHttp(server.cluster, server)
    _pass_a_minute(server)
    _look(api)
    assert api.silent()


def _look(api: OverHttp) -> None:
    for _ in range(over_http.SILENT_TURNS * 4):
        time.sleep(0.005)
        api.stuck(PATIENCE_SECONDS)


def _pass_a_minute(server: ApiServer) -> None:
    """As if the process had been stopped: time passes, and nothing is computed."""
    server._last_traffic = server._last_acted = (time.monotonic() - 60, time.process_time())
