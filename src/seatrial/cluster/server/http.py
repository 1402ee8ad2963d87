"""The embedded API on loopback HTTP: one server for each cluster. With its connections it alone touches sockets."""

from __future__ import annotations

import asyncio
import posixpath
import re
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import msgspec

from seatrial.cluster import watch
from seatrial.cluster.cluster import Cluster
from seatrial.cluster.server.connection import Connection, asked_about
from seatrial.cluster.server.transcript import Transcript
from seatrial.model.resource import Body, Ref

LOOPBACK = "127.0.0.1"
BUSY_SHARE = 0.4
"""Of one core. A client that waits for ever leaves the process idle."""
IDLE_SHARE = 0.05
TURNS = 8
"""Of the event loop, until every connection that was let in is known and cut."""
DOUBT_SECONDS = 3.0
DISCOVERY = ("/api", "/apis")
POLL_SECONDS = 1.0
"""Whoever asks the same again after so long, while nothing has changed, waits for it to change."""


class Server:
    """One cluster on one port of loopback, until it is closed."""

    def __init__(
        self,
        cluster: Cluster,
        *,
        port: int = 0,
        actor: str = "",
        calls_itself: str = "",
        transcript: Transcript | None = None,
    ) -> None:
        self.cluster = cluster
        self.actor = actor
        """Who speaks, where the caller knows better than the client's user agent."""
        self._own_name = re.compile(rf"\bfieldManager={re.escape(calls_itself)}(?=&|$)") if calls_itself else None
        """How the client names itself as a field manager where that is not who speaks: after the program it is in."""
        self.content: Callable[[Body], bool] = _never
        """When the client that speaks stops waiting for an object: the lazy cluster does not move for such a one."""
        self.mount = ""
        """What the client puts before every path it asks for."""
        self.refusing = False
        """Whether lists and watches are refused, so that a client which waits for ever gives up."""
        self.transcript = transcript
        self.requests = 0
        self._last_heard = self._last_acted = (time.monotonic(), time.process_time())
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

    def kubeconfig(self, namespace: str = "default", path: str = "") -> str:
        """What any client needs to reach this cluster, at the root of the server or below a path of it."""
        self.mount = posixpath.normpath(path) if path else ""
        return msgspec.yaml.encode(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [{"name": "seatrial", "cluster": {"server": self.url + path}}],
                "users": [{"name": "seatrial", "user": {}}],
                "contexts": [
                    {"name": "seatrial", "context": {"cluster": "seatrial", "user": "seatrial", "namespace": namespace}}
                ],
                "current-context": "seatrial",
            }
        ).decode()

    def quiet_seconds(self) -> float:
        """How long no client has done anything and none was told anything.

        What a client reads while it has a watch open is no sign that it goes on: Helm looks after the pods of
        everything that it is told of, five times a second and not more.

        While this process works hard, a client inside it (the Helm SDK) may only be slow: that is not counted as quiet
        before DOUBT_SECONDS are over.
        """
        acted, worked = self._last_acted
        quiet, work = time.monotonic() - acted, time.process_time() - worked
        return quiet if work < quiet * BUSY_SHARE or quiet > DOUBT_SECONDS else 0.0

    def idle_seconds(self) -> float:
        """How long nothing was asked or told while this process did next to nothing."""
        heard, worked = self._last_heard
        quiet = time.monotonic() - heard
        return quiet if time.process_time() - worked < quiet * IDLE_SHARE else 0.0

    def unheard_seconds(self) -> float:
        return time.monotonic() - self._last_heard[0]

    def stir(self, *, reads: bool = False) -> None:
        """Something was asked or told just now."""
        self._last_heard = (time.monotonic(), time.process_time())
        if not (reads and any(True for _ in self.cluster.watches.waiting())):
            self._last_acted = self._last_heard

    def renamed(self, query: str) -> str:
        """A query with the name of who speaks in the place of that of its program."""
        return self._own_name.sub(f"fieldManager={self.actor}", query) if self._own_name else query

    def waited_for(self) -> list[Ref]:
        """What clients wait for: the objects of their open watches, or what one keeps asking for."""
        with self.cluster.lock:
            store = self.cluster.store
            found = {ref for opened in self.cluster.watches.waiting() for ref in watch.targets(opened, store)}
            # A copy: clients are heard on another thread.
            polled = tuple(self._polled) if self._asked_at == store.version else ()
            # Nobody waits for long by asking for what is not there: to be gone is what such a one waits for.
            found |= {ref for url in polled for ref in asked_about(self.cluster, url) if store.get(ref) is not None}
        return sorted(found)

    def asked_what_is_served(self) -> bool:
        """Whether which kinds there are is the last that anyone asked, and nothing has changed since."""
        return self._last_asked in ((url, self.cluster.store.version) for url in DISCOVERY)

    def refuse_waits(self) -> None:
        """End every wait: cut what is watched, and refuse to have it watched again."""
        self.refusing = True
        _on_loop(self._cut_watches())

    def heard(self, url: str, *, asks: bool) -> bool:
        """Count a request; whether the client asks the same again though nothing has changed: it polls.

        Engines may ask twice in one breath and do not wait: only who comes back after a while does.
        """
        self.requests += 1
        self.stir(reads=asks)
        version = self.cluster.store.version
        same = asks and not self.actor and self._last_asked == (url, version)
        self._last_asked = (url, version)
        if not asks or time.monotonic() - self._first_asked(url) < POLL_SECONDS:
            return same
        self._polled.add(url)
        return True

    def move_for(self, url: str, actor: str) -> None:
        """Let the lazy cluster move for what is polled. The answer tells of the cluster as it is then."""
        self.cluster.awaits(actor, asked_about(self.cluster, url))
        self._first_asked(url)

    def _first_asked(self, url: str) -> float:
        """When this was first asked since the cluster last changed."""
        version = self.cluster.store.version
        if self._asked_at != version:
            self._asked, self._asked_at, self._polled = {}, version, set()
        return self._asked.setdefault(url, time.monotonic())

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


def _never(body: Body) -> bool:
    return False


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
