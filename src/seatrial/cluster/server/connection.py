"""One client connection to the embedded API: requests in, replies or watch events out."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING

import httptools
import msgspec

from seatrial.cluster import watch
from seatrial.cluster.cluster import Cluster
from seatrial.cluster.refusal import Refused, internal
from seatrial.cluster.request import Request
from seatrial.cluster.server import routes
from seatrial.cluster.server.options import Query
from seatrial.cluster.server.responses import HttpRequest, HttpResponse, refusal, reply_to
from seatrial.cluster.tables.partial import as_partial, wants_partial
from seatrial.cluster.verbs import rbac
from seatrial.cluster.watch import Watch
from seatrial.model.resource import Body, Ref

if TYPE_CHECKING:
    from seatrial.cluster.server.http import ApiServer

HEADERS_MAX = 64 * 1024
REASONS = {200: b"OK", 201: b"Created", 404: b"Not Found"}
TOO_MANY_REQUESTS = 429
STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
LAST_CHUNK = b"0\r\n\r\n"
TOO_SLOW = Refused(408, "Timeout", "the request did not become complete in time")
HEADERS_TOO_LARGE = Refused(431, "BadRequest", "Request header fields too large")
UNREAD_MAX = 64 * 1024 * 1024
"""Unread events of a client, in bytes, before its watch is closed."""
DROPPED_MAX = 64 * 1024 * 1024
LINGER_SECONDS = 2.0
"""How much, and for how long, a refused client may continue to send."""


class Connection(asyncio.Protocol):
    """One connection of one client: requests in, replies or a stream of watch events out."""

    def __init__(self, server: ApiServer) -> None:
        self.server = server
        self.transport: asyncio.Transport | None = None
        self.opened: Watch | None = None
        self.timer: asyncio.TimerHandle | None = None
        self._parser = httptools.HttpRequestParser(self)
        self._refused = False
        """Whether the client was refused. Further data is dropped, so that it can read the reply."""
        self._dropped_bytes = 0
        self._is_complete = False
        """Whether a request ended in the last received data."""
        self._partial = False
        """Whether the open watch sends the metadata of objects only."""
        self._pipelined = False
        """Whether another request arrived while a watch was open on this connection."""
        self.since: float | None = None
        """When the request began that is not complete yet."""
        self._begin()

    def _begin(self) -> None:
        self._url = b""
        self._headers: dict[bytes, bytes] = {}
        self._body: list[bytes] = []
        self._size = self._header_size = self._head_so_far = 0
        self._is_head = True

    # Called by asyncio.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        if self.server.closed:
            transport.abort()
            return
        self.server.connections.add(self)
        # Without TCP_NODELAY a reply would wait 40 ms for the client's delayed acknowledgement.
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def data_received(self, data: bytes) -> None:
        if self._refused:
            self._dropped_bytes += len(data)
            if self._dropped_bytes > DROPPED_MAX:
                self.cut()
            return
        self._is_complete = False
        if self.since is None:
            self.since = asyncio.get_running_loop().time()
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            # The request was answered without an upgrade. What follows is not HTTP.
            self._hang_up()
        except httptools.HttpParserCallbackError as wrapped:
            self._refuse_callback_error(wrapped)
        except httptools.HttpParserError as error:
            self._refuse(Refused(400, "BadRequest", f"the request is no HTTP that is understood here: {error}"))
        else:
            self._limit_unfinished_head(len(data))
            if self._is_complete:
                self.since = None

    def connection_lost(self, exc: Exception | None) -> None:
        self.server.connections.discard(self)
        self._close_watch()

    # Called by httptools.

    def on_url(self, url: bytes) -> None:
        self._url += url
        self._limit_headers(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        self._limit_headers(len(name) + len(value))
        name = name.lower()
        # Of the headers that are read here, only impersonate-group may be repeated.
        repeated = self._headers.get(name) if name == b"impersonate-group" else None
        self._headers[name] = value if repeated is None else repeated + b"\n" + value

    def on_headers_complete(self) -> None:
        self._is_head = False
        if self._headers.get(b"expect", b"").lower() == b"100-continue" and self.transport:
            self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, body: bytes) -> None:
        self._size += len(body)
        if self._size > routes.BODY_MAX:
            raise _TooLarge(routes.too_large_body())
        self._body.append(body)

    def on_message_complete(self) -> None:
        method = self._parser.get_method().decode()
        url = self._url.decode("latin-1").removeprefix(self.server.mount)
        headers, body = self._headers, b"".join(self._body)
        keep = self._parser.should_keep_alive()
        self._is_complete = True
        self._begin()
        if self.opened is None:
            self._respond(method, url, headers, body, keep=keep)
        else:
            self._pipelined = True

    # Our own methods.

    def unread_bytes(self) -> int:
        return self.transport.get_write_buffer_size() if self.transport is not None else 0

    def expire(self) -> None:
        """Refuse a request that did not become complete."""
        self._refuse(TOO_SLOW)

    def cut(self) -> None:
        if self.transport is not None:
            self.transport.abort()

    def _limit_headers(self, size: int) -> None:
        self._header_size += size
        if self._header_size > HEADERS_MAX:
            raise _TooLarge(HEADERS_TOO_LARGE)

    def _respond(self, method: str, url: str, headers: dict[bytes, bytes], body: bytes, *, keep: bool) -> None:
        if method == "PATCH" and self.server.holds(url, lambda: self._respond(method, url, headers, body, keep=keep)):
            return
        polls = self.server.count_request(url, is_read=method == "GET")
        try:
            if self.server.guard is not None:
                url = self.server.guard.admitted(self.server.cluster, url, headers, has_body=bool(body))
            request = self._http_request(method, url, headers, body)
            if method == "GET" and self._watch(request):
                return
            if polls:
                self.server.run_for(url)
            reply = reply_to(self.server.cluster, request)
            if self.server.transcript is not None:
                self.server.transcript.answered(request, reply, objects_of(self.server.cluster, url) if polls else ())
        except Refused as refused:
            reply = refusal(refused.code, refused.status())
        self._send(reply, keep=keep, head=method == "HEAD")
        self.server.mark_activity(reads=method == "GET")
        self.server.answered(method, url, reply.code)

    def _http_request(self, method: str, url: str, headers: dict[bytes, bytes], body: bytes) -> HttpRequest:
        path, _, query = url.partition("?")
        agent = self.server.manager or headers.get(b"user-agent", b"").decode("latin-1").partition("/")[0]
        content_type = headers.get(b"content-type", b"").decode("latin-1").partition(";")[0].strip()
        return HttpRequest(
            method=method,
            path=path,
            query=self.server.with_manager(query),
            content_type=content_type,
            accept=headers.get(b"accept", b"").decode("latin-1"),
            body=self.server.rewritten(method, content_type, body),
            actor=self.server.actor or agent or "user",
            agent=agent,
            user=rbac.user_of(self.server.cluster, headers),
        )

    def _watch(self, http: HttpRequest) -> bool:
        """Start streaming if the request is a watch."""
        query = Query(http.query)
        if not query.flag("watch"):
            return False
        if self.server.refusing:
            raise Refused(403, "Forbidden", "forbidden: the rehearsal has ended this wait")
        request = routes.to_request(http.method, http.path, query, http.content_type, http.body, http.actor)
        if request.verb != "watch":
            return False
        self._partial = wants_partial(http.accept)
        self._stream(msgspec.structs.replace(request, user=http.user), query)
        return True

    def _send(self, reply: HttpResponse, *, keep: bool, head: bool = False, lingers: bool = False) -> None:
        if self.transport is None:
            return
        reason = REASONS.get(reply.code, b"Refused")
        lines = [
            b"HTTP/1.1 %d %s" % (reply.code, reason),
            b"Content-Type: " + reply.content_type.encode(),
            b"Content-Length: %d" % len(reply.body),
            b"Cache-Control: no-store",  # otherwise Go clients cache discovery in the user's home
        ]
        lines += [b'Warning: 299 - "%s"' % _quoted(text) for text in reply.warnings]
        if reply.code == TOO_MANY_REQUESTS:
            lines.append(b"Retry-After: 0")  # A real server asks for a second.
        if not keep:
            lines.append(b"Connection: close")
        self._write(b"\r\n".join(lines) + b"\r\n\r\n" + (b"" if head else reply.body))
        if not keep and not lingers:
            self.transport.close()

    def _write(self, data: bytes) -> None:
        if self.transport is not None:
            self.transport.write(data)

    def _refuse(self, refused: Refused) -> None:
        """Reply to an invalid request and ignore further data.

        If the connection were closed at once, data in transit would reset it before the client reads the reply.
        """
        if self._refused or self.transport is None:
            return
        self._refused = True
        self._send(HttpResponse(refused.code, msgspec.json.encode(refused.status())), keep=False, lingers=True)
        self.transport.write_eof()
        self.timer = asyncio.get_running_loop().call_later(LINGER_SECONDS, self.cut)

    def _refuse_callback_error(self, wrapped: httptools.HttpParserCallbackError) -> None:
        """The parser wraps exceptions of its callbacks."""
        error = wrapped.__context__
        if not isinstance(error, _TooLarge):
            self._refuse(internal("this is a fault of seatrial's: it said more on its standard error"))
            raise error or wrapped
        self._refuse(error.refused)

    def _limit_unfinished_head(self, size: int) -> None:
        """The parser reports a header only when it is complete, which may never happen."""
        self._head_so_far = self._head_so_far + size if self._is_head and not self._is_complete else 0
        if self._head_so_far > HEADERS_MAX * 2:
            self._refuse(HEADERS_TOO_LARGE)

    def _hang_up(self) -> None:
        if self.transport is not None:
            self.transport.close()

    def _stream(self, request: Request, query: Query) -> None:
        """Serve a watch: existing objects, then changes, until the client disconnects or the timeout ends."""
        cluster = self.server.cluster
        initial = query.flag("sendInitialEvents") if query.has("sendInitialEvents") else None
        bookmarks = query.flag("allowWatchBookmarks")
        try:
            opened = cluster.watch(request, initial_events=initial, bookmarks=bookmarks)
        except Refused as refused:
            if refused.code != 410:
                raise
            # The API server notices this after the watch is open, and sends it as an event.
            self._write(STREAM + _chunk({"type": "ERROR", "object": refused.status()}) + LAST_CHUNK)
            return
        self.opened = opened
        expected = tuple(self.server.expected())
        if self.server.transcript is not None:
            self.server.transcript.watched(opened, self.server.is_ready, expected)
        self.server.mark_activity()
        self._write(STREAM)
        loop = asyncio.get_running_loop()
        opened.wake = lambda: _soon(loop, self._flush)
        if request.timeout_seconds > 0:
            self.timer = loop.call_later(request.timeout_seconds, self._end_watch)
        cluster.awaits(watch.unready(opened, cluster.store, self.server.is_ready, expected))
        with cluster.lock:
            opened.refresh(cluster.store.version)
            is_cut = cluster.death.cuts_watch()
        if is_cut:
            self.cut()
            return
        self._flush()

    def _flush(self) -> None:
        if self.opened is None or self.transport is None or not self.opened.events:
            return
        chunks = []
        while self.opened.events:
            event = self.opened.next_event()
            chunks.append(_chunk({**event, "object": as_partial(event["object"])} if self._partial else event))
        self.server.mark_activity()
        self._write(b"".join(chunks))
        if self.unread_bytes() > UNREAD_MAX:
            self.cut()
        elif self.unread_bytes():
            self.server.limit_unread()

    def _end_watch(self) -> None:
        self._flush()
        self._close_watch()
        self._write(LAST_CHUNK)
        if self._pipelined:
            self._hang_up()

    def _close_watch(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
        if self.opened is not None:
            with self.server.cluster.lock:
                self.server.cluster.watches.close(self.opened)
            self.opened = None


def objects_of(cluster: Cluster, url: str) -> list[Ref]:
    """The objects that a GET reads."""
    path, _, query = url.partition("?")
    try:
        request = routes.to_request("GET", path, Query(query), "", b"", "")
    except Refused:
        return []  # Discovery or another path without objects.
    kind = cluster.discovery.find(request.group, request.version, request.plural)
    if kind is None:
        return []
    if request.name:
        return [Ref(kind.kind, request.namespace if kind.namespaced else "", request.name, kind.group)]
    return list(watch.targets(Watch(kind, request), cluster.store))


class _TooLarge(Exception):
    """Carries a refusal out of the parser's callbacks."""

    def __init__(self, refused: Refused) -> None:
        super().__init__(refused.message)
        self.refused = refused


def _soon(loop: asyncio.AbstractEventLoop, work: Callable[[], None]) -> None:
    loop.call_soon_threadsafe(work)


def _chunk(event: Body) -> bytes:
    line = watch.encoded(event)
    return b"%x\r\n%s\r\n" % (len(line), line)


def _quoted(text: str) -> bytes:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ").encode()
