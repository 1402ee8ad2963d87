"""How many requests a second the embedded API answers, in process (of processor time) and over loopback."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator

import msgspec

from bench import Figure, rate, seconds
from bench.objects import ask, configmap, deployment
from seatrial.cluster.cluster import Cluster
from seatrial.cluster.server.http import LOOPBACK, ApiServer
from seatrial.model.garbage import collect_rarely
from seatrial.model.resource import Body

IN_PROCESS = 5_000
OVER_LOOPBACK = 3_000
CONFIGMAPS = "/api/v1/namespaces/default/configmaps"


def figures() -> Iterator[Figure]:
    collect_rarely()  # As the command does.
    yield from _in_process(Cluster())
    with ApiServer(Cluster()) as server:
        # The client is another process, as clients are: in this one it would take turns with the server.
        command = [sys.executable, "-m", "bench.api", str(server.port)]
        answered = subprocess.run(command, check=True, capture_output=True).stdout
    yield from msgspec.json.decode(answered, type=list[Figure])


def _in_process(cluster: Cluster) -> Iterator[Figure]:
    here = "default"
    yield rate(
        "in process: create ConfigMap",
        IN_PROCESS,
        lambda n: ask(cluster, "create", "configmaps", here, body=configmap(f"created-{n}")),
    )
    yield rate(
        "in process: apply ConfigMap (new)",
        IN_PROCESS,
        lambda n: ask(cluster, "patch", "configmaps", here, f"applied-{n}", configmap(f"applied-{n}"), "apply"),
    )
    yield rate(
        "in process: apply ConfigMap (changed)",
        IN_PROCESS,
        lambda n: ask(cluster, "patch", "configmaps", here, f"applied-{n}", _changed(f"applied-{n}"), "apply"),
    )
    yield rate(
        "in process: create Deployment with its pod, ready",
        IN_PROCESS // 10,
        lambda n: ask(cluster, "create", "deployments", here, body=deployment(f"web-{n}")),
    )
    yield rate(
        "in process: delete ConfigMap",
        IN_PROCESS,
        lambda n: ask(cluster, "delete", "configmaps", here, f"created-{n}"),
    )


def _over_loopback(client: _Client) -> Iterator[Figure]:
    yield rate(
        "loopback: create ConfigMap",
        OVER_LOOPBACK,
        lambda n: client.send("POST", CONFIGMAPS, "application/json", configmap(f"created-{n}")),
        seconds,
    )
    yield rate(
        "loopback: apply ConfigMap (new)",
        OVER_LOOPBACK,
        lambda n: client.send(
            "PATCH",
            f"{CONFIGMAPS}/applied-{n}?fieldManager=bench",
            "application/apply-patch+yaml",
            configmap(f"applied-{n}"),
        ),
        seconds,
    )
    yield rate(
        "loopback: get ConfigMap",
        OVER_LOOPBACK,
        lambda n: client.send("GET", f"{CONFIGMAPS}/created-{n}"),
        seconds,
    )


def _changed(name: str) -> Body:
    return {**configmap(name), "data": {"colour": "green"}}


class _Client:
    """One kept-alive connection: as little as a client can be, so that the server is what is measured."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection((LOOPBACK, port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, method: str, path: str, content_type: str = "", body: Body | None = None) -> None:
        data = msgspec.json.encode(body) if body is not None else b""
        head = f"{method} {path} HTTP/1.1\r\nHost: bench\r\nContent-Type: {content_type}\r\nContent-Length: {len(data)}"
        self._socket.sendall(head.encode() + b"\r\n\r\n" + data)
        status = self._read()
        if not status.startswith((b"HTTP/1.1 200", b"HTTP/1.1 201")):
            raise SystemExit(f"{method} {path}: {status.decode()}")

    def _read(self) -> bytes:
        """Read one reply whole; its first line."""
        reply = b""
        while (end := reply.find(b"\r\n\r\n")) < 0:
            reply += self._socket.recv(65536)
        size = int(reply[:end].partition(b"Content-Length: ")[2].split(b"\r\n")[0])
        missing = end + 4 + size - len(reply)
        while missing > 0:
            missing -= len(self._socket.recv(65536))
        return reply.partition(b"\r\n")[0]


if __name__ == "__main__":
    sys.stdout.buffer.write(msgspec.json.encode(list(_over_loopback(_Client(int(sys.argv[1]))))))
