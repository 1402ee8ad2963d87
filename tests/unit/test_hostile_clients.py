"""Clients of `seatrial serve` that mean harm."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from seatrial.cli import kubeconfigfile
from seatrial.cluster.cluster import Cluster
from seatrial.cluster.server import http as http_server
from seatrial.cluster.server.connection import Connection
from seatrial.cluster.server.guard import Guard
from seatrial.cluster.server.http import ApiServer
from seatrial.model.errors import CannotContinue

NAMESPACES = "/api/v1/namespaces"
POST = b'{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "mine"}}'


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with ApiServer(Cluster(), guard=Guard("secret")) as server:
        yield server


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
def test_web_pages_are_refused(server: ApiServer, headers: dict[str, str], code: int) -> None:
    assert _sent(server, "GET", f"/secret{NAMESPACES}", headers)[0] == code


@pytest.mark.parametrize(
    ("path", "headers", "code"),
    [
        (NAMESPACES, {}, 401),
        (f"/wrong{NAMESPACES}", {}, 401),
        (f"/secre{NAMESPACES}", {}, 401),
        (f"{NAMESPACES}/secret", {}, 401),
        (NAMESPACES, {"Authorization": "Bearer wrong"}, 401),
        (NAMESPACES, {"Authorization": "Basic secret"}, 401),
        (NAMESPACES, {"Authorization": "Bearer secret"}, 200),
        (f"/secret{NAMESPACES}", {}, 200),
        (f"/secret{NAMESPACES}?limit=1", {}, 200),
        ("/secret/version", {}, 200),
        (f"{NAMESPACES}?watch=true", {}, 401),
    ],
)
def test_a_client_without_the_token_is_refused(
    server: ApiServer, path: str, headers: dict[str, str], code: int
) -> None:
    got, body = _sent(server, "GET", path, headers)
    assert got == code
    if code == 401:
        assert body == {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": "Unauthorized",
            "reason": "Unauthorized",
            "code": 401,
        }


def test_the_tokens_of_service_accounts_are_accepted(server: ApiServer) -> None:
    account = "/secret/api/v1/namespaces/default/serviceaccounts/default/token"
    review = b'{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}'
    code, found = _sent(server, "POST", account, {"Content-Type": "application/json"}, review)
    assert code == 201
    code, refused = _sent(server, "GET", NAMESPACES, {"Authorization": f"Bearer {found['status']['token']}"})
    assert (code, refused["reason"]) == (403, "Forbidden")


def test_a_body_needs_a_content_type(server: ApiServer) -> None:
    assert _sent(server, "POST", f"/secret{NAMESPACES}", {}, POST)[0] == 415
    assert _sent(server, "POST", f"/secret{NAMESPACES}", {"Content-Type": "text/plain"}, POST)[0] == 415
    assert _sent(server, "POST", f"/secret{NAMESPACES}", {"Content-Type": "application/json"}, POST)[0] == 201


@pytest.mark.parametrize(
    "sent", [b"GET /x HTTP/1.1\r\nHost: localh", b"POST /x HTTP/1.1\r\nContent-Length: 9\r\n\r\nab"]
)
def test_a_request_that_never_becomes_complete_times_out(sent: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "REQUEST_SECONDS_MAX", 0.05)
    monkeypatch.setattr(http_server, "SWEEP_SECONDS", 0.02)
    with (
        ApiServer(Cluster(), guard=Guard("secret")) as server,
        socket.create_connection(("127.0.0.1", server.port), timeout=10) as client,
    ):
        client.sendall(sent)
        assert client.recv(4096).startswith(b"HTTP/1.1 408 ")


def test_watches_that_nobody_reads_have_a_total_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "UNREAD_TOTAL_MAX", 20 * 1024 * 1024)
    watched = b"GET /api/v1/configmaps?watch=true HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with ApiServer(Cluster()) as server:
        clients = [socket.create_connection(("127.0.0.1", server.port), timeout=10) for _ in range(20)]
        for client in clients:
            client.sendall(watched)
            assert client.recv(12) == b"HTTP/1.1 200"
        config = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "x" * 900_000}}
        for number in range(6):
            body = json.dumps({**config, "metadata": {"name": f"c{number}"}}).encode()
            created = _sent(server, "POST", "/api/v1/namespaces/default/configmaps", {}, body)
            assert created[0] == 201
        _sent(server, "GET", "/version", {})
        unread = sum(one.unread_bytes() for one in tuple(server.connections))
        assert 0 < unread <= 21 * 1024 * 1024
        for client in clients:
            client.close()


def test_a_connection_that_is_made_after_the_server_has_closed_is_cut() -> None:
    server = ApiServer(Cluster())
    server.close()

    async def received() -> bytes:
        loop = asyncio.get_running_loop()
        with socket.create_server(("127.0.0.1", 0)) as listening, socket.socket() as client:
            client.connect(listening.getsockname())
            await loop.connect_accepted_socket(lambda: Connection(server), listening.accept()[0])
            client.setblocking(False)
            return await asyncio.wait_for(loop.sock_recv(client, 1), 20)

    with suppress(ConnectionResetError):
        assert asyncio.run(received()) == b""
    assert not server.connections


def test_the_kubeconfig_is_not_written_through_a_symlink(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.touch()
    (tmp_path / "link").symlink_to(target)
    with pytest.raises(CannotContinue), kubeconfigfile.written(str(tmp_path / "link"), "text"):
        pass
    assert target.read_text() == ""


def test_two_servers_do_not_share_a_kubeconfig(tmp_path: Path) -> None:
    file = str(tmp_path / "config")
    with (
        ApiServer(Cluster(), guard=Guard("one")) as first,
        ApiServer(Cluster(), guard=Guard("two")) as second,
        kubeconfigfile.written(file, first.kubeconfig()),
    ):
        with pytest.raises(CannotContinue, match="another seatrial serve uses it"):
            kubeconfigfile.written(file, second.kubeconfig()).__enter__()
        assert "/one" in Path(file).read_text()
    assert not Path(file).exists()


def test_a_kubeconfig_that_another_server_wrote_is_not_removed(tmp_path: Path) -> None:
    file = tmp_path / "config"
    with (
        ApiServer(Cluster(), guard=Guard("one")) as first,
        ApiServer(Cluster(), guard=Guard("two")) as second,
        kubeconfigfile.written(str(file), first.kubeconfig()),
    ):
        file.write_text(second.kubeconfig())
    assert "/two" in file.read_text()


def _sent(
    server: ApiServer, method: str, path: str, headers: dict[str, str], body: bytes | None = None
) -> tuple[int, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    connection.request(method, path, body=body, headers=headers)
    reply = connection.getresponse()
    found = reply.status, json.loads(reply.read())
    connection.close()
    return found


def test_controllers_that_fight_are_stopped_and_the_server_answers(server: ApiServer) -> None:
    json_type = {"Content-Type": "application/json"}
    pods = {"selector": {"matchLabels": {"app": "a"}}}
    pods["template"] = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}  # type: ignore[dict-item]
    for kind, name in (("Deployment", "one"), ("Deployment", "two"), ("ReplicaSet", "three")):
        body = {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name, "labels": {"app": "a"}}, "spec": pods}
        path = f"/secret/apis/apps/v1/namespaces/default/{kind.lower()}s"
        assert _sent(server, "POST", path, json_type, json.dumps(body).encode())[0] == 201
    assert server.cluster.controllers.idle
    assert list(server.cluster.controllers.fights.seen()) == []
    assert not server.cluster.controllers.unrest


def test_a_stopped_controller_acts_again_when_a_client_changes_its_object(server: ApiServer) -> None:
    cluster = server.cluster
    json_type = {"Content-Type": "application/json"}
    apps, scalers = "/secret/apis/apps/v1/namespaces/default", "/secret/apis/autoscaling/v2/namespaces/default"
    pods = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"selector": {"matchLabels": {"app": "a"}}, "template": pods}
    web = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}
    assert _sent(server, "POST", f"{apps}/deployments", json_type, json.dumps(web).encode())[0] == 201
    for name, least, most in (("small", 1, 2), ("large", 5, 9)):
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
        bounds = {"minReplicas": least, "maxReplicas": most, "scaleTargetRef": target}
        scaler = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": name}}
        body = json.dumps({**scaler, "spec": bounds}).encode()
        assert _sent(server, "POST", f"{scalers}/horizontalpodautoscalers", json_type, body)[0] == 201
    cluster.settle()
    (fight,) = cluster.controllers.fights.seen()
    assert (fight.object.name, [ref.name for ref in fight.writers]) == ("web", ["large", "small"])
    assert _sent(server, "DELETE", f"{scalers}/horizontalpodautoscalers/large", {})[0] == 200
    merge = {"Content-Type": "application/merge-patch+json"}
    assert _sent(server, "PATCH", f"{apps}/deployments/web", merge, b'{"spec": {"replicas": 7}}')[0] == 200
    cluster.settle()
    assert _sent(server, "GET", f"{apps}/deployments/web", {})[1]["spec"]["replicas"] == 2
