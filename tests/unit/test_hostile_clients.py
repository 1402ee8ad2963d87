"""Clients of `seatrial serve` that mean harm."""

from __future__ import annotations

import http.client
from pathlib import Path

import pytest

from seatrial.cli import kubeconfigfile
from seatrial.cluster.cluster import Cluster
from seatrial.cluster.server.http import ApiServer
from seatrial.model.errors import CannotContinue


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({}, 200),
        ({"Host": "localhost:80"}, 200),
        ({"Host": "evil.example"}, 403),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
    ],
)
def test_web_pages_are_refused(headers: dict[str, str], code: int) -> None:
    with ApiServer(Cluster()) as server:
        server.guarded = True
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
        connection.request("GET", "/api/v1/namespaces", headers=headers)
        assert connection.getresponse().status == code
        connection.close()


def test_the_kubeconfig_is_not_written_through_a_symlink(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.touch()
    (tmp_path / "link").symlink_to(target)
    with pytest.raises(CannotContinue), kubeconfigfile.written(str(tmp_path / "link"), "text"):
        pass
    assert target.read_text() == ""
