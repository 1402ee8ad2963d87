"""Faults of the API server that a client handles by itself: a 429, and a watch that is cut."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

from seatrial.cluster.cluster import Cluster
from seatrial.cluster.death import Death
from seatrial.cluster.server.http import ApiServer
from seatrial.engines.script import Command
from seatrial.play.in_process import InProcess

NAMESPACES = "/api/v1/namespaces"


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with ApiServer(Cluster(), actor="helm") as server:
        yield server


def test_a_client_is_told_to_repeat_a_request(server: ApiServer) -> None:
    server.cluster.death = Death(("helm",), "429@2")
    answers = [_created(server, name) for name in ("one", "two", "two")]
    assert answers == [(201, None), (429, "0"), (201, None)]


def test_an_engine_does_not_hear_of_it() -> None:
    cluster = Cluster()
    cluster.death = Death(("argocd",), "429@1")
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "one"}}
    answer = InProcess(cluster, "argocd").do(Command("create", "v1", "Namespace", "", "one", body))
    assert (answer.code, answer.message) == (201, "")


def test_the_first_watch_after_a_write_is_cut(server: ApiServer) -> None:
    server.cluster.death = Death(("helm",), "cut@1")
    assert _created(server, "one") == (201, None)
    path = f"{NAMESPACES}?watch=true&resourceVersion=0"
    with _sent(server, "GET", path) as first, pytest.raises((http.client.IncompleteRead, ConnectionResetError)):
        first.read()
    with _sent(server, "GET", path) as again:
        assert json.loads(again.readline())["type"] == "ADDED"


def _created(server: ApiServer, name: str) -> tuple[int, str | None]:
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    with _sent(server, "POST", NAMESPACES, json.dumps(body).encode()) as answer:
        answer.read()
        return answer.status, answer.headers["Retry-After"]


@contextmanager
def _sent(server: ApiServer, method: str, path: str, body: bytes = b"") -> Iterator[http.client.HTTPResponse]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    connection.request(method, path, body, {"Content-Type": "application/json"})
    with closing(connection), connection.getresponse() as answer:
        yield answer
