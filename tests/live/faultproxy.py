"""A proxy before an API server that injects faults: refusals, cut connections, expired watches, silence."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from msgspec import Struct

FOREVER = 1_000_000


class Fault(Struct):
    """What happens to the next requests whose method, path and query contain `of`."""

    of: str
    code: int = 0
    """The answer, instead of the server's."""
    message: str = "injected"
    times: int = 1
    retry_after: str = ""
    cut_after_events: int = -1
    """Close the connection of a watch after so many events, in the middle of the next line."""
    resumable: bool = False
    """With code 410: the list can go on with what is there now."""
    expired: bool = False
    """Answer a watch with an ERROR event: its version is too old."""


class Seen(Struct, frozen=True):
    """One request as it arrived."""

    method: str
    url: str
    accept: str
    code: int


class FaultProxy(ThreadingHTTPServer):
    """Relays to `upstream`, except where a fault fits."""

    daemon_threads = True

    def __init__(self, upstream: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.upstream = upstream.removeprefix("http://")
        self.faults: list[Fault] = []
        self.seen: list[Seen] = []
        self.sent_bytes = 0
        self.relayed: set[http.client.HTTPConnection] = set()
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self._lock = threading.Lock()

    def fault_for(self, line: str) -> Fault | None:
        with self._lock:
            for fault in self.faults:
                if fault.of in line and fault.times > 0:
                    fault.times -= 1
                    return fault
        return None

    def hang_up(self) -> None:
        """End the watches whose clients are gone: the server does not notice it otherwise."""
        for upstream in tuple(self.relayed):
            if upstream.sock is not None:
                with contextlib.suppress(OSError):
                    upstream.sock.shutdown(socket.SHUT_RDWR)

    def count(self, *words: str) -> int:
        """How many requests contain all these words."""
        return sum(all(word in f"{seen.method} {unquote(seen.url)}" for word in words) for seen in self.seen)


@contextmanager
def faults_before(upstream: str) -> Iterator[FaultProxy]:
    with FaultProxy(upstream) as proxy:
        thread = threading.Thread(target=proxy.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield proxy
        finally:
            proxy.shutdown()
            proxy.hang_up()
            thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # Otherwise each answer waits 40 ms for an acknowledgement of its headers.
    server: FaultProxy

    def _relay(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        fault = self.server.fault_for(f"{self.command} {unquote(self.path)}")
        if fault is not None and fault.code:
            self._saw(fault.code)
            self._refuse(fault)
            return
        upstream = http.client.HTTPConnection(self.server.upstream, timeout=30)
        self.server.relayed.add(upstream)
        headers = {
            name: value for name, value in self.headers.items() if name.lower() not in ("host", "accept-encoding")
        }
        upstream.request(self.command, self.path, body or None, headers)
        with contextlib.closing(upstream), upstream.getresponse() as answer:
            self._saw(answer.status)
            if answer.headers.get("Transfer-Encoding") == "chunked":
                self._stream(answer, fault)
            else:
                self._answer(answer.status, answer.read(), dict(answer.headers))

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _relay

    def _saw(self, code: int) -> None:
        self.server.seen.append(Seen(self.command, self.path, self.headers.get("Accept") or "", code))

    def _refuse(self, fault: Fault) -> None:
        status: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "status": "Failure",
            "message": fault.message,
            "reason": {403: "Forbidden", 410: "Expired", 429: "TooManyRequests"}.get(fault.code, "InternalError"),
            "code": fault.code,
        }
        if fault.resumable:
            following = parse_qs(urlsplit(self.path).query).get("continue", [""])[0]
            status["metadata"] = {"continue": following}
        extra = {"Retry-After": fault.retry_after} if fault.retry_after else {}
        self._answer(fault.code, json.dumps(status).encode(), extra)

    def _answer(self, code: int, data: bytes, headers: dict[str, str]) -> None:
        self.send_response(code)
        self.send_header("Content-Type", headers.get("Content-Type", "application/json"))
        self.send_header("Content-Length", str(len(data)))
        if after := headers.get("Retry-After"):
            self.send_header("Retry-After", after)
        self.end_headers()
        self.wfile.write(data)
        self.server.sent_bytes += len(data)

    def _stream(self, answer: http.client.HTTPResponse, fault: Fault | None) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        if fault is not None and fault.expired:
            gone = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version"}
            self._chunk(json.dumps({"type": "ERROR", "object": gone}).encode() + b"\n")
            self._chunk(b"")
            return
        with contextlib.suppress(OSError):
            for number, line in enumerate(answer):
                if fault is not None and number == fault.cut_after_events:
                    self._chunk(line[: len(line) // 2])
                    self.close_connection = True
                    return
                self._chunk(line)
            self._chunk(b"")

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def log_message(self, format: str, *args: Any) -> None:
        """Tests read `seen` instead."""
