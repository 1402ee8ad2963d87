"""The embedded API on loopback HTTP. The only part of the cluster that touches a socket or the wall clock."""

from __future__ import annotations

import asyncio
import re
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import httptools
import msgspec

from seatrial.cluster import rbac, routes, watch
from seatrial.cluster.answers import Answer, answer
from seatrial.cluster.cluster import Cluster
from seatrial.cluster.options import Query
from seatrial.cluster.refusal import Refused
from seatrial.cluster.request import Request
from seatrial.cluster.watch import Watch
from seatrial.resource import Body, Ref

LOOPBACK = "127.0.0.1"
BUSY_SHARE = 0.4
"""Of one core. A client that waits for ever leaves the process idle."""
IDLE_SHARE = 0.05
TURNS = 8
"""Of the event loop, until every connection that was let in is known and cut."""
DOUBT_SECONDS = 3.0
POLL_SECONDS = 1.0
"""Whoever asks the same again after so long, while nothing has changed, waits for it to change."""
HEADERS_MAX = 64 * 1024
REASONS = {200: b"OK", 201: b"Created"}
STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
LAST_CHUNK = b"0\r\n\r\n"


class Server:
    """One cluster on one port of loopback, until it is closed."""

    def __init__(self, cluster: Cluster, *, port: int = 0, actor: str = "", calls_itself: str = "") -> None:
        self.cluster = cluster
        self.actor = actor
        """Who speaks, where the caller knows better than the client's user agent."""
        self._own_name = re.compile(rf"\bfieldManager={re.escape(calls_itself)}(?=&|$)") if calls_itself else None
        """How the client names itself as a field manager where that is not who speaks: after the program it is in."""
        self.content: Callable[[Body], bool] = _never
        """When the client that speaks stops waiting for an object: the lazy cluster does not move for such a one."""
        self.refusing = False
        """Whether lists and watches are refused, so that a client which waits for ever gives up."""
        self.requests = 0
        self._last_heard = (time.monotonic(), time.process_time())
        self.connections: set[Connection] = set()
        self._last_asked = ("", -1)
        self._asked: dict[str, float] = {}
        """When each path was first asked for since the cluster last changed."""
        self._asked_at = -1
        self._polled: set[str] = set()
        self._socket = socket.create_server((LOOPBACK, port), backlog=512)
        self.port = self._socket.getsockname()[1]
        self._listening: asyncio.Server = _on_loop(self._listen())

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self.port}"

    def close(self) -> None:
        """Stop listening and cut every connection."""
        _on_loop(self._stop())

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def kubeconfig(self, namespace: str = "default") -> str:
        """What any client needs to reach this cluster."""
        return msgspec.yaml.encode(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [{"name": "seatrial", "cluster": {"server": self.url}}],
                "users": [{"name": "seatrial", "user": {}}],
                "contexts": [
                    {"name": "seatrial", "context": {"cluster": "seatrial", "user": "seatrial", "namespace": namespace}}
                ],
                "current-context": "seatrial",
            }
        ).decode()

    def quiet_seconds(self) -> float:
        """How long no client has asked for anything and none was told anything.

        While this process works hard, a client inside it (the Helm SDK) may only be slow: that is not counted as quiet
        before DOUBT_SECONDS are over.
        """
        heard, worked = self._last_heard
        quiet, work = time.monotonic() - heard, time.process_time() - worked
        return quiet if work < quiet * BUSY_SHARE or quiet > DOUBT_SECONDS else 0.0

    def idle_seconds(self) -> float:
        """How long nothing was asked or told while this process did next to nothing."""
        heard, worked = self._last_heard
        quiet = time.monotonic() - heard
        return quiet if time.process_time() - worked < quiet * IDLE_SHARE else 0.0

    def stir(self) -> None:
        """Something was asked or told just now."""
        self._last_heard = (time.monotonic(), time.process_time())

    def renamed(self, query: str) -> str:
        """A query with the name of who speaks in the place of that of its program."""
        return self._own_name.sub(f"fieldManager={self.actor}", query) if self._own_name else query

    def waited_for(self) -> list[Ref]:
        """What clients wait for: the objects of their open watches, or what one keeps asking for."""
        with self.cluster.lock:
            store = self.cluster.store
            found = {ref for opened in self.cluster.watches.waiting() for ref in watch.targets(opened, store)}
            polled = self._polled if self._asked_at == store.version else ()
            # Nobody waits for long by asking for what is not there: to be gone is what such a one waits for.
            found |= {ref for url in polled for ref in _asked_about(self.cluster, url) if store.get(ref) is not None}
        return sorted(found)

    def refuse_waits(self) -> None:
        """End every wait: cut what is watched, and refuse to have it watched again."""
        self.refusing = True
        _on_loop(self._cut_watches())

    def heard(self, url: str, *, asks: bool) -> bool:
        """Count a request; whether the client asks the same again though nothing has changed: it polls."""
        self.requests += 1
        self.stir()
        version = self.cluster.store.version
        if self._asked_at != version:
            self._asked, self._asked_at, self._polled = {}, version, set()
        same = asks and self._last_asked == (url, version)
        self._last_asked = (url, version)
        now = time.monotonic()
        if not asks or now - self._asked.setdefault(url, now) < POLL_SECONDS:
            return same
        self._polled.add(url)
        return True

    async def _listen(self) -> asyncio.Server:
        loop = asyncio.get_running_loop()
        return await loop.create_server(lambda: Connection(self), sock=self._socket)

    async def _cut_watches(self) -> None:
        for connection in tuple(self.connections):
            if connection.opened is not None:
                connection.cut()

    async def _stop(self) -> None:
        self._listening.close()
        # A client may have been let in a moment ago, and its connection only be made in the turns that follow.
        for _ in range(TURNS):
            for connection in tuple(self.connections):
                connection.cut()
            await asyncio.sleep(0)


class Connection(asyncio.Protocol):
    """One connection of one client: requests in, replies or a stream of watch events out."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.transport: asyncio.Transport | None = None
        self.opened: Watch | None = None
        self.timer: asyncio.TimerHandle | None = None
        self._parser = httptools.HttpRequestParser(self)
        self._begin()

    def _begin(self) -> None:
        self._url = b""
        self._headers: dict[bytes, bytes] = {}
        self._body: list[bytes] = []
        self._size = self._header_size = 0

    # asyncio calls these.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.server.connections.add(self)
        # A reply that waits for the client's delayed acknowledgement would take 40 ms.
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._refuse(Refused(400, "BadRequest", "Upgrade request required or not understood"))
        except httptools.HttpParserError as wrong:
            self._refuse(Refused(400, "BadRequest", f"the request is no HTTP that is understood here: {wrong}"))
        except _TooLarge as refused:
            self._refuse(refused.refused)

    def connection_lost(self, exc: Exception | None) -> None:
        self.server.connections.discard(self)
        self._close_watch()

    # httptools calls these.

    def on_url(self, url: bytes) -> None:
        self._url += url
        self._limit_headers(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        self._limit_headers(len(name) + len(value))
        name = name.lower()
        # Of the headers that are read here, a client repeats only the groups it wants to be in.
        repeated = self._headers.get(name) if name == b"impersonate-group" else None
        self._headers[name] = value if repeated is None else repeated + b"\n" + value

    def on_headers_complete(self) -> None:
        if self._headers.get(b"expect", b"").lower() == b"100-continue" and self.transport:
            self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, body: bytes) -> None:
        self._size += len(body)
        if self._size > routes.BODY_MAX:
            raise _TooLarge(routes.too_large_body())
        self._body.append(body)

    def on_message_complete(self) -> None:
        method = self._parser.get_method().decode()
        url, headers, body = self._url.decode("latin-1"), self._headers, b"".join(self._body)
        keep = self._parser.should_keep_alive()
        self._begin()
        if self.opened is None:
            self._respond(method, url, headers, body, keep=keep)

    # What we do.

    def cut(self) -> None:
        if self.transport is not None:
            self.transport.abort()

    def _limit_headers(self, size: int) -> None:
        self._header_size += size
        if self._header_size > HEADERS_MAX:
            raise _TooLarge(Refused(431, "BadRequest", "Request header fields too large"))

    def _respond(self, method: str, url: str, headers: dict[bytes, bytes], body: bytes, *, keep: bool) -> None:
        path, _, query_text = url.partition("?")
        agent = headers.get(b"user-agent", b"").decode("latin-1").partition("/")[0]
        actor = self.server.actor or agent or "someone"
        polls = self.server.heard(url, asks=method == "GET")
        content_type = headers.get(b"content-type", b"").decode("latin-1").partition(";")[0].strip()
        accept = headers.get(b"accept", b"").decode("latin-1")
        cluster = self.server.cluster
        try:
            query = Query(self.server.renamed(query_text))
            user = rbac.user_of(cluster, headers)
            if method == "GET" and query.flag("watch"):
                if self.server.refusing:
                    raise Refused(403, "Forbidden", "forbidden: the rehearsal has ended this wait")
                request = routes.to_request(method, path, query, content_type, body, actor)
                if request.verb == "watch":
                    self._stream(msgspec.structs.replace(request, user=user), query)
                    return
            if polls:
                cluster.awaits(actor, _asked_about(cluster, url))
            reply = answer(cluster, method, path, query, content_type, accept, body, actor, agent, user)
        except Refused as refused:
            reply = Answer(refused.code, msgspec.json.encode(refused.status()))
        self._send(reply, keep=keep, head=method == "HEAD")
        self.server.stir()

    def _send(self, reply: Answer, *, keep: bool, head: bool = False) -> None:
        if self.transport is None:
            return
        reason = REASONS.get(reply.code, b"Refused")
        lines = [
            b"HTTP/1.1 %d %s" % (reply.code, reason),
            b"Content-Type: " + reply.content_type.encode(),
            b"Content-Length: %d" % len(reply.body),
        ]
        lines += [b'Warning: 299 - "%s"' % _quoted(text) for text in reply.warnings]
        if not keep:
            lines.append(b"Connection: close")
        self._write(b"\r\n".join(lines) + b"\r\n\r\n" + (b"" if head else reply.body))
        if not keep:
            self.transport.close()

    def _write(self, data: bytes) -> None:
        if self.transport is not None:
            self.transport.write(data)

    def _refuse(self, refused: Refused) -> None:
        self._send(Answer(refused.code, msgspec.json.encode(refused.status())), keep=False)

    def _stream(self, request: Request, query: Query) -> None:
        """Answer a watch: what is there, then whatever comes, until the client leaves or its time is up."""
        cluster = self.server.cluster
        initial = query.flag("sendInitialEvents") if query.has("sendInitialEvents") else None
        bookmarks = query.flag("allowWatchBookmarks")
        try:
            opened = cluster.watch(request, initial_events=initial, bookmarks=bookmarks)
        except Refused as refused:
            if refused.code != 410:
                raise
            # The API server finds out when the watch is open already, and says so as an event.
            self._write(STREAM + _chunk({"type": "ERROR", "object": refused.status()}) + LAST_CHUNK)
            return
        self.opened = opened
        self._write(STREAM)
        loop = asyncio.get_running_loop()
        opened.wake = lambda: _soon(loop, self._flush)
        if request.timeout_seconds > 0:
            self.timer = loop.call_later(request.timeout_seconds, self._end_watch)
        self._flush()
        cluster.awaits(request.actor, self._unhappy(opened))
        self._flush()

    def _unhappy(self, opened: Watch) -> list[Ref]:
        """What is watched and is not yet as the client wants it. What is there already is not waited for."""
        store, content = self.server.cluster.store, self.server.content
        found = ((ref, store.get(ref)) for ref in watch.targets(opened, store))
        return [ref for ref, body in found if body is None or not content(body)]

    def _flush(self) -> None:
        if self.opened is None or self.transport is None or not self.opened.events:
            return
        chunks = []
        while self.opened.events:
            chunks.append(_chunk(self.opened.events.popleft()))
        self.server.stir()
        self._write(b"".join(chunks))

    def _end_watch(self) -> None:
        self._flush()
        self._close_watch()
        self._write(LAST_CHUNK)

    def _close_watch(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
        if self.opened is not None:
            with self.server.cluster.lock:
                self.server.cluster.watches.close(self.opened)
            self.opened = None


class _TooLarge(Exception):
    """Carries a refusal out of the parser's callbacks."""

    def __init__(self, refused: Refused) -> None:
        super().__init__(refused.message)
        self.refused = refused


def _never(body: Body) -> bool:
    return False


def _asked_about(cluster: Cluster, url: str) -> list[Ref]:
    """The objects that a GET is about."""
    path, _, query = url.partition("?")
    try:
        request = routes.to_request("GET", path, Query(query), "", b"", "")
    except Refused:
        return []  # What the API is made of, and no object.
    kind = cluster.discovery.find(request.group, request.version, request.plural)
    if kind is None:
        return []
    if request.name:
        return [Ref(kind.kind, request.namespace if kind.namespaced else "", request.name, kind.group)]
    return list(watch.targets(Watch(kind, request), cluster.store))


def _soon(loop: asyncio.AbstractEventLoop, work: Callable[[], None]) -> None:
    loop.call_soon_threadsafe(work)


def _chunk(event: Body) -> bytes:
    line = watch.encoded(event)
    return b"%x\r\n%s\r\n" % (len(line), line)


def _quoted(text: str) -> bytes:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ").encode()


_loop: asyncio.AbstractEventLoop | None = None
_loop_lock = threading.Lock()


def _on_loop(work: Any) -> Any:
    """Run a coroutine on the one thread that serves every cluster of this process."""
    global _loop  # noqa: PLW0603
    with _loop_lock:
        if _loop is None:
            _loop = asyncio.new_event_loop()
            threading.Thread(target=_loop.run_forever, name="seatrial-http", daemon=True).start()
    future: Future[Any] = asyncio.run_coroutine_threadsafe(work, _loop)
    return future.result()
