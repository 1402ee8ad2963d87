"""A client whose process dies on the way: from one write on, nothing of it reaches the API server.

Or a request of it fails once: `500@3` is not done, `504@3` is done and its answer is lost, `429@3` is to be repeated.
Or a connection: after `cut@3` the next watch is cut.
"""

from __future__ import annotations

from seatrial.cluster.refusal import Refused, unavailable
from seatrial.cluster.request import Request
from seatrial.helm.records import TYPE
from seatrial.kinds.tables.catalogue import ServedKind
from seatrial.model.resource import Ref, name_of

FIRST = "*"
"""Dies before its first write, except for Helm's own records."""
WRITES = ("create", "update", "patch", "delete")
NOT_DONE, ANSWER_LOST, BUSY, CUT = "500", "504", "429", "cut"
FLAPS = "Internal error occurred: failed calling webhook: context deadline exceeded"
"""Of a webhook that does not answer once. Helm itself repeats a request after `etcdserver: leader changed`."""
TOO_MANY = "Too many requests, please try again later."
TIMED_OUT = "Timeout: request did not complete within requested timeout - context deadline exceeded"


class Killed(Exception):
    """The client is dead: its script is not continued."""


class Death:
    """When a client dies, and whether it has."""

    def __init__(self, actors: tuple[str, ...] = (), when: str = "") -> None:
        """`when` is the object that it does not write any more, or the number of its last write."""
        self._actors, self._when = actors, when
        answer, _, write = when.partition("@") if "@" in when else ("", "", when)
        self._answer, self._left = answer, int(write) if write.isdigit() else 0
        self.at: Ref | None = None
        """The object of the write that it died before, or after."""
        self._cuts = False

    @property
    def is_fault(self) -> bool:
        """Whether only one request fails, and the client goes on."""
        return bool(self._answer)

    @property
    def counts(self) -> bool:
        """Whether it dies after a number of writes, whose answer it does not get."""
        return self._when.isdigit()

    def refuse(self, kind: ServedKind, request: Request) -> None:
        """Raise `Refused` for a request of a dead client. It is not recorded: nothing heard it."""
        if not self._when or request.actor not in self._actors:
            return
        if self._left == 1 and self._answer in (NOT_DONE, BUSY) and _is_write(request):
            self._left = 0
            raise Refused(500, "InternalError", FLAPS) if self._answer == NOT_DONE else busy()
        if self.at is None and not self.counts and _is_write(request):
            ref = written_ref(kind, request)
            if str(ref) == self._when or (self._when == FIRST and not _is_record(request)):
                self.at = ref
        if self.at is not None:
            raise died()

    def wrote(self, kind: ServedKind, request: Request) -> None:
        """Count a write that the API server accepted."""
        if self._left and self.at is None and request.actor in self._actors and _is_write(request):
            self._left -= 1
            if not self._left and self._answer == CUT:
                self._cuts = True
                return
            if not self._left and self._answer:
                raise Refused(504, "Timeout", TIMED_OUT)
            if not self._left:
                self.at = written_ref(kind, request)

    def cuts_watch(self) -> bool:
        """Whether the watch that was opened is to be cut: the first one after a write."""
        cuts, self._cuts = self._cuts, False
        return cuts


def busy() -> Refused:
    """As priority and fairness of the API server: the client is to repeat the request."""
    return Refused(429, "TooManyRequests", TOO_MANY)


def died() -> Refused:
    return unavailable()


def _is_write(request: Request) -> bool:
    return request.verb in WRITES and not request.dry_run and not request.unheard


def written_ref(kind: ServedKind, request: Request) -> Ref:
    """The object that a request is about. Its body is not checked yet: it may be a list, or nothing."""
    name = request.name or (name_of(request.body) if isinstance(request.body, dict) else "")
    return Ref(kind.kind, request.namespace if kind.namespaced else "", name, kind.group)


def _is_record(request: Request) -> bool:
    return isinstance(request.body, dict) and request.body.get("type") == TYPE
