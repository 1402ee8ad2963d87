"""The embedded API on loopback HTTP, one server per cluster. Only this module and its connections use sockets."""

from __future__ import annotations

import asyncio
import posixpath
import re
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import msgspec

from seatrial.cluster import watch
from seatrial.cluster.cluster import Cluster
from seatrial.cluster.server.connection import Connection, objects_of
from seatrial.cluster.server.guard import Guard
from seatrial.cluster.server.in_turn import Answer, InTurn
from seatrial.cluster.server.routes import PROTOBUF
from seatrial.cluster.server.transcript import Transcript
from seatrial.model.resource import Body, Ref
from seatrial.sandbox import Door

LOOPBACK = "127.0.0.1"
BUSY_SHARE = 0.4
"""Share of one core. A client that waits forever leaves the process idle."""
IDLE_SHARE = 0.05
LOOP_ITERATIONS = 8
"""Iterations of the event loop until every accepted connection is known and closed."""
DOUBT_SECONDS = 3.0
TASKS = Path("/proc/self/task")
DISCOVERY = ("/api", "/apis")
UNREAD_TOTAL_MAX = 256 * 1024 * 1024
"""Unread events of all clients, in bytes, before the watch with the most is closed."""
REQUEST_SECONDS_MAX = 60.0
"""For a request to become complete, on a server that is there for long."""
SWEEP_SECONDS = 5.0
TURN_SECONDS = 0.25
"""How long a request waits for those whose turn comes first, while its client is idle."""
NOT_FOUND = 404
WRITES = ("POST", "PUT", "PATCH")
POLL_SECONDS = 1.0
"""A client that repeats a request after this time, while nothing has changed, is waiting for a change."""


class ApiServer:
    """One cluster on one loopback port, until it is closed."""

    def __init__(
        self,
        cluster: Cluster,
        *,
        port: int = 0,
        actor: str = "",
        client_manager: str = "",
        manager: str = "",
        rewrite: Callable[[Body], Body] | None = None,
        transcript: Transcript | None = None,
        guard: Guard | None = None,
        in_turn: bool = False,
    ) -> None:
        """`in_turn`: the client creates the objects of a kind side by side. `rewrite`: what it writes passes this."""
        self.cluster = cluster
        self.actor = actor
        """The actor, if the caller knows it better than the client's user agent."""
        self._client_manager = (
            re.compile(rf"\bfieldManager={re.escape(client_manager)}(?=&|$)") if client_manager else None
        )
        """The client's own field manager, if it is another one than `manager`: the name of its program."""
        self.manager = manager
        """The field manager of the client's writes, if it is not the actor."""
        self._rewrite = rewrite
        self.is_ready: Callable[[Body], bool | None] = _never
        """When the current client stops waiting for an object: a slow cluster does not run controllers for a ready
        one."""
        self.expected: Callable[[], list[Ref]] = list
        """The objects that the current client waits for, if it has watches open; empty if only its watches say that."""
        self.mount = ""
        """The prefix of every path that the client requests."""
        self.refusing = False
        """Whether lists and watches are refused, so that a client that waits forever gives up."""
        self.transcript = transcript
        self.guard = guard
        """Who may send requests; everyone on this machine where it is None."""
        self._in_turn = InTurn() if in_turn else None
        self.requests = 0
        self._last_traffic = self._last_acted = (time.monotonic(), time.process_time())
        self.connections: set[Connection] = set()
        self._last_request = ("", -1)
        self._first_requests: dict[str, float] = {}
        """When each path was first requested since the cluster last changed."""
        self._requests_version = -1
        self._polled: set[str] = set()
        self.closed = False
        """Whether it has stopped: a connection that is made after that is cut."""
        self._doors: list[asyncio.Task[asyncio.Server]] = []
        self._socket = socket.create_server((LOOPBACK, port), backlog=512)
        self.port = self._socket.getsockname()[1]
        self._listening: asyncio.Server = _on_loop(self._listen())

    @property
    def url(self) -> str:
        """With the secret of the server, if it has one."""
        return f"http://{LOOPBACK}:{self.port}{self.guard.path if self.guard else ''}"

    def door(self) -> Door:
        """An entrance for one process in the sandbox, which has no network: it sends us the socket it listens on."""
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        _on_loop(self._await_door(ours))
        return Door(self.port, theirs.detach())

    def close(self) -> None:
        """Stop listening and close every connection."""
        _on_loop(self._stop())

    def __enter__(self) -> ApiServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def kubeconfig(self) -> str:
        """A kubeconfig for this cluster, as users know it."""
        return msgspec.yaml.encode(self._access("default", self.url)).decode()

    def json_kubeconfig(self, namespace: str, path: str) -> str:
        """The same for a client that reads it for every object, at the root of the server or below a path."""
        self.mount = posixpath.normpath(path) if path else ""
        return msgspec.json.encode(self._access(namespace, self.url + path)).decode()

    def _access(self, namespace: str, url: str) -> Body:
        context = {"cluster": "seatrial", "user": "seatrial", "namespace": namespace}
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "seatrial", "cluster": {"server": url}}],
            "users": [{"name": "seatrial", "user": {"token": self.guard.token} if self.guard else {}}],
            "contexts": [{"name": "seatrial", "context": context}],
            "current-context": "seatrial",
        }

    def quiet_seconds(self) -> float:
        """How long no client has acted and nothing was sent to one.

        Reads while a watch is open do not count as activity: Helm reads the pods of everything it watches, five times a
        second.

        While this process is busy, a client inside it (the Helm SDK) may only be slow. That counts as quiet only after
        DOUBT_SECONDS.
        """
        acted, worked = self._last_acted
        quiet, work = time.monotonic() - acted, time.process_time() - worked
        return quiet if work < quiet * BUSY_SHARE or quiet > DOUBT_SECONDS else 0.0

    def idle_seconds(self) -> float:
        """How long nothing was requested or sent while this process was almost idle."""
        last, worked = self._last_traffic
        quiet = time.monotonic() - last
        return quiet if time.process_time() - worked < quiet * IDLE_SHARE else 0.0

    def silent_seconds(self) -> float:
        return time.monotonic() - self._last_traffic[0]

    def computes(self) -> bool:
        """Whether another thread of this process could run now: the client inside it, or the server.

        On a busy machine they may wait for a core for seconds, in which nothing is requested. Known on Linux only.
        """
        own = threading.get_native_id()
        return any(_is_runnable(path) for path in TASKS.glob("[0-9]*/stat") if path.parent.name != str(own))

    def mark_activity(self, *, reads: bool = False) -> None:
        """Record that something was requested or sent now."""
        self._last_traffic = (time.monotonic(), time.process_time())
        if not (reads and any(True for _ in self.cluster.watches.waiting())):
            self._last_acted = self._last_traffic

    def with_manager(self, query: str) -> str:
        """A query with the name of the field manager instead of the program's."""
        named = f"fieldManager={self.manager or self.actor}"
        return self._client_manager.sub(named, query) if self._client_manager else query

    def rewritten(self, method: str, content_type: str, body: bytes) -> bytes:
        """The body of a write as the cluster gets it. Helm's records are protobuf, and stay as they are."""
        if self._rewrite is None or method not in WRITES or content_type == PROTOBUF:
            return body
        sent = msgspec.json.decode(body)
        return msgspec.json.encode(self._rewrite(sent)) if isinstance(sent, dict) else body

    def waited_for(self) -> list[Ref]:
        """What clients wait for: the objects of their open watches, or what one keeps polling."""
        with self.cluster.lock:
            store = self.cluster.store
            watches = tuple(self.cluster.watches.waiting())
            expected = self.expected() if watches else ()
            if live := [ref for ref in expected if store.get(ref) is not None]:
                return sorted(live)
            found = {ref for opened in watches for ref in watch.targets(opened, store)}
            # A copy: requests arrive on another thread.
            polled = tuple(self._polled) if self._requests_version == store.version else ()
            # A client that polls a missing object waits for its absence and is done.
            found |= {ref for url in polled for ref in objects_of(self.cluster, url) if store.get(ref) is not None}
        return sorted(found)

    def last_request_was_discovery(self) -> bool:
        """Whether the last request was for discovery, and nothing has changed since."""
        return self._last_request in ((url, self.cluster.store.version) for url in DISCOVERY)

    def refuse_waits(self) -> None:
        """End every wait: close open watches and refuse new ones."""
        self.refusing = True
        _on_loop(self._cut_watches())

    def count_request(self, url: str, *, is_read: bool) -> bool:
        """Count a request. Returns whether the client repeats it although nothing has changed: it polls.

        Engines may repeat a request at once without waiting. Only a repetition after a while is polling.
        """
        self.requests += 1
        self.mark_activity(reads=is_read)
        version = self.cluster.store.version
        same = is_read and not self.actor and self._last_request == (url, version)
        self._last_request = (url, version)
        if not is_read or time.monotonic() - self._first_requested(url) < POLL_SECONDS:
            return same
        self._polled.add(url)
        return True

    def holds(self, url: str, answer: Answer) -> bool:
        """Whether a creation arrives before its turn: then `answer` is called when that has come."""
        if self._in_turn is None:
            return False
        is_first = not self._in_turn.waits
        held = any(self._in_turn.holds(ref, answer) for ref in objects_of(self.cluster, url))
        if held:
            self.requests += 1
            self.mark_activity()
        if held and is_first:
            self._await_turn()
        return held

    def answered(self, method: str, url: str, code: int) -> None:
        """A request was answered, and another one may have waited for that."""
        if self._in_turn is None or not (method == "PATCH" or (method == "GET" and code == NOT_FOUND)):
            return
        for ref in objects_of(self.cluster, url):
            if method == "PATCH":
                _soon(self._in_turn.wrote(ref))
            else:
                self._in_turn.not_found(ref)

    def _await_turn(self) -> None:
        asyncio.get_running_loop().call_later(TURN_SECONDS, self._skip_turn, self.requests)

    def _skip_turn(self, requests: int) -> None:
        """Go on without a request that does not arrive, unless the client has been busy since."""
        if self._in_turn is None or not self._in_turn.waits or self.closed:
            return
        if requests == self.requests and not self.computes():
            _soon(self._in_turn.skip())
        self._await_turn()

    def run_for(self, url: str) -> None:
        """Run the controllers of a slow cluster for what is polled. The reply shows the result."""
        self.cluster.awaits(objects_of(self.cluster, url))
        self._first_requested(url)

    def _first_requested(self, url: str) -> float:
        """When this was first requested since the cluster last changed."""
        version = self.cluster.store.version
        if self._requests_version != version:
            self._first_requests, self._requests_version, self._polled = {}, version, set()
        return self._first_requests.setdefault(url, time.monotonic())

    async def _listen(self) -> asyncio.Server:
        loop = asyncio.get_running_loop()
        if self.guard is not None:
            self._sweep()
        return await loop.create_server(lambda: Connection(self), sock=self._socket)

    def _sweep(self) -> None:
        """Refuse requests that do not become complete, for as long as this server listens."""
        loop = asyncio.get_running_loop()
        for connection in tuple(self.connections):
            if connection.since is not None and loop.time() - connection.since > REQUEST_SECONDS_MAX:
                connection.expire()
        if not self.closed:
            loop.call_later(SWEEP_SECONDS, self._sweep)

    async def _await_door(self, ours: socket.socket) -> None:
        asyncio.get_running_loop().add_reader(ours, self._open_door, ours)

    def _open_door(self, ours: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        loop.remove_reader(ours)
        with ours:
            _, descriptors, _, _ = socket.recv_fds(ours, 1, 1)
        for descriptor in descriptors:
            listening = loop.create_server(lambda: Connection(self), sock=socket.socket(fileno=descriptor))
            self._doors.append(loop.create_task(listening))

    async def _cut_watches(self) -> None:
        for connection in tuple(self.connections):
            if connection.opened is not None:
                connection.cut()

    def limit_unread(self) -> None:
        """Close the watch with the most unread events, where all of them together have too many."""
        unread = {one: one.unread_bytes() for one in self.connections if one.opened is not None}
        if sum(unread.values()) > UNREAD_TOTAL_MAX:
            max(unread, key=lambda one: unread[one]).cut()

    async def _stop(self) -> None:
        self.closed = True
        self._listening.close()
        for door in self._doors:
            (await door).close()
        # A client may have been accepted a moment ago; its connection is created in the following iterations.
        for _ in range(LOOP_ITERATIONS):
            for connection in tuple(self.connections):
                connection.cut()
            await asyncio.sleep(0)


def _soon(answer: Answer | None) -> None:
    if answer is not None:
        asyncio.get_running_loop().call_soon(answer)


def _never(body: Body) -> bool:
    return False


def _is_runnable(stat: Path) -> bool:
    try:
        return stat.read_text().rpartition(")")[2].split()[0] == "R"
    except OSError:  # The thread has ended.
        return False


_loop: asyncio.AbstractEventLoop | None = None
_loop_lock = threading.Lock()


def _on_loop(work: Any) -> Any:
    """Run a coroutine on the thread that serves every cluster of this process."""
    global _loop  # noqa: PLW0603
    with _loop_lock:
        if _loop is None:
            _loop = asyncio.new_event_loop()
            threading.Thread(target=_loop.run_forever, name="seatrial-http", daemon=True).start()
    future: Future[Any] = asyncio.run_coroutine_threadsafe(work, _loop)
    return future.result()
