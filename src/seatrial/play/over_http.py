"""The embedded cluster for HTTP clients: it advances while they wait, and detects waits that cannot end."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from seatrial.cluster import stuck
from seatrial.cluster.cluster import Cluster
from seatrial.cluster.server.http import ApiServer
from seatrial.cluster.server.transcript import ClientWait
from seatrial.engines import Stuck
from seatrial.engines.script import Answer, Line
from seatrial.model import lazy_re
from seatrial.model.errors import CannotContinue
from seatrial.model.resource import Body, Ref
from seatrial.model.timeline import Event
from seatrial.play.in_process import InProcess
from seatrial.sandbox import Door

CALM_SECONDS = 0.25
"""How long a client must be silent before its wait is checked."""
SILENT_TURNS = 25
"""How often a client must have been found silent before it waits for what is gone, or for a kind that is not served.

Turns are counted and not time: on a busy machine a client that has something to do gets its turns as well.
"""
SILENCE_SECONDS = 15.0
DOUBT_SECONDS = 10.0
"""How long, where it has all that it should be content with."""
_ENVIRONMENT = lazy_re.compile(
    r"dial tcp 127\.0\.0\.1:\d+: .*"
    r"|(?:open|socket|pipe|pipe2|fork/exec|accept4?|write|mkdir) ?\S*: (?:too many open files|cannot allocate memory"
    r"|no space left on device|resource temporarily unavailable|disk quota exceeded)"
)
"""Errors of a client that only this system can cause: the server of a rehearsal listens as long as its client runs."""


def refuse_environment(error: str) -> None:
    """Raise if a client failed because of this system: the cluster that it could not reach is not the chart's fault."""
    if fault := _ENVIRONMENT.search(error):
        words = " ".join(error[fault.start() :].split())
        raise CannotContinue(f"reach the rehearsed cluster: {words}; this system lacks something, not the input")


class OverHttp:
    """The embedded cluster as `engines.Api`."""

    def __init__(self, cluster: Cluster, server: ApiServer) -> None:
        self._cluster = cluster
        self._server = server
        self._silent = (0, 0)
        """How many requests there were when the client was last looked at, and how often there were no more."""
        self._passed_seconds = 0.0
        self._idle_turns = 0
        self._doubt_seconds = DOUBT_SECONDS

    def kubeconfig(self, namespace: str = "default", path: str = "") -> str:
        return self._server.json_kubeconfig(namespace, path)

    def door(self) -> Door:
        return self._server.door()

    def believes(
        self,
        content: Callable[[Body], bool | None],
        waits_for: Callable[[Iterable[Event]], list[Ref]],
        *,
        sleeps_seconds: float = 0,
    ) -> None:
        self._doubt_seconds = DOUBT_SECONDS + sleeps_seconds
        start, recorder = self._cluster.recorder.count, self._cluster.recorder
        self._server.is_ready = content
        self._server.expected = lambda: waits_for(recorder.written_since(start, self._server.actor))

    def stuck(self, patience_seconds: float) -> Stuck | None:
        requests, turns = self._silent
        self._silent = (self._server.requests, turns + 1 if requests == self._server.requests else 0)
        if requests != self._server.requests:
            self._idle_turns = 0
        quiet = self._server.quiet_seconds()
        if quiet < CALM_SECONDS:
            return None
        certain = self._is_certain()
        waited = self._server.waited_for()
        if not waited and turns > SILENT_TURNS:
            waited = stuck.vanished(self._cluster)
        if not waited and (certain or (turns > SILENT_TURNS and self._server.last_request_was_discovery())):
            waited = stuck.unserved(self._cluster)
        refs = stuck.stuck_on(self._cluster, waited, self._server.is_ready, certain=certain)
        if not refs:
            return None
        why, lacking = stuck.why(self._cluster, refs), stuck.lacking(self._cluster, refs)
        left = patience_seconds - self._passed_seconds
        wait = ClientWait(tuple(waited), self._server.is_ready, tuple(refs), why, left, certain)
        if self._server.transcript is not None:
            self._server.transcript.waited(wait)
        passed, wait.ends = stuck.wait_out(self._cluster, refs, left, wait.is_ready)
        self._passed_seconds += passed
        if not wait.ends:
            self._cluster.recorder.give_up()
        return Stuck(why, tuple(refs), lacking, max(passed, 1.0) if wait.ends else 0.0)

    def _is_certain(self) -> bool:
        """Whether the client has long been silent, and was found idle often enough since."""
        if self._server.silent_seconds() <= self._doubt_seconds or self._server.computes():
            self._idle_turns = 0
            return False
        self._idle_turns += 1
        return self._idle_turns > SILENT_TURNS

    def silent(self) -> bool:
        # Seconds alone say nothing: a client that gets no core for them, or a computer that sleeps, is silent as well.
        idle = self._idle_turns > SILENT_TURNS and self._server.idle_seconds() > SILENCE_SECONDS
        return idle and not self._server.waited_for()

    def hang_up(self) -> None:
        self._server.refuse_waits()

    def do(self, line: Line) -> Answer:
        return InProcess(self._cluster, self._server.actor).do(line)

    def hide(self, refs: Iterable[Ref], groups: Iterable[str] = ()) -> None:
        with self._cluster.lock:
            self._cluster.recorder.hidden.update(refs)
            self._cluster.recorder.noted_in.update(groups)
            self._cluster.controllers.leave_alone(frozenset(groups))

    def silent_seconds(self) -> float:
        return self._server.silent_seconds()

    def changes(self) -> int:
        return self._cluster.store.version

    def requests(self) -> int:
        return self._server.requests
