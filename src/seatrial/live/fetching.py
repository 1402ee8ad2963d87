"""Keeps a `Seen` up to date with a cluster: one list and one watch for each kind and namespace, each in a thread.

Questions that no watch answers (discovery, a dry run, the keys of a Secret) are asked in threads, too; those whose
answer is no are asked again. The caller's thread is the only one that changes the `Seen`.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

from msgspec import Struct

from seatrial.live import probe
from seatrial.live.client import Client, denial_of, path_of
from seatrial.live.discovery import from_resource_list
from seatrial.live.seen import (
    FORBIDDEN,
    IsServed,
    Keys,
    KindOf,
    Probe,
    ProbeResult,
    Question,
    Read,
    RecordQuestion,
    Seen,
)
from seatrial.live.transport import Disconnected, LiveRequest, RefusedRequest
from seatrial.live.watching import WatchedChange, follow
from seatrial.model.errors import CannotContinue
from seatrial.model.resource import Body, Ref, dig, ref_of
from seatrial.sources.stored import stored_revision

PAUSE_SECONDS = 0.1
"""Until a question is asked again whose answer is no. Grows by half each time, up to a second."""
PAUSE_SECONDS_MAX = 1.0
UNSERVED_SECONDS = 1.0
"""Until discovery is read again for a kind that is not served yet."""
FIRST_LOOK_SECONDS = 10.0
"""So that a short deadline does not end in a report of nothing, where the API server is slow."""
HORIZON_SECONDS = 86_400.0
"""A watch goes on until the client is closed: deadlines are not its business."""
JOIN_SECONDS = 0.02
JOINS_MAX = 10
"""A thread that calls a webhook that never answers is left to end with the process."""

EXPECTED = (RefusedRequest, Disconnected, CannotContinue)

RELATED: dict[type[Question], tuple[str, ...]] = {
    IsServed: ("CustomResourceDefinition", "APIService"),
    KindOf: ("CustomResourceDefinition", "APIService"),
    Keys: ("Secret",),
    RecordQuestion: ("Secret", "ConfigMap"),
    Probe: ("Service", "EndpointSlice", "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"),
}
"""Kinds whose changes may change the answer to a question."""


class _Synced(Struct, frozen=True):
    read: Read
    bodies: list[Body]


class _Changed(Struct, frozen=True):
    change: WatchedChange


class _Failed(Struct, frozen=True):
    read: Read
    why: Exception


class _Fetched(Struct, frozen=True):
    question: Question
    answer: Any


_Item = _Synced | _Changed | _Failed | _Fetched


class Fetching:
    """State over time: the open watches, the questions under way, and when to ask again."""

    def __init__(self, client: Client, seen: Seen, seconds: float, *, by_name: bool = True) -> None:
        """`by_name`: read a single object where only one of its kind is looked for."""
        self.client = client
        self.seen = seen
        self._by_name = by_name
        self._began = time.monotonic()
        self._until = self._began + seconds
        self._items: queue.SimpleQueue[_Item] = queue.SimpleQueue()
        self._open: set[Read] = set()
        self._synced: set[Read] = set()
        """Reads that have succeeded once."""
        self._unserved: set[Read] = set()
        self._asking: set[Question] = set()
        self._due: dict[Question, float] = {}
        """When to ask again what was answered with no."""
        self._pauses: dict[Question, float] = {}
        self._look_again = 0.0
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> Fetching:
        return self

    def __exit__(self, *_: object) -> None:
        """End all watches. A thread that was just opening one ends it when it is closed again."""
        for _turn in range(JOINS_MAX):
            self.client.transport.close()
            for thread in self._threads:
                thread.join(JOIN_SECONDS)
            if not any(thread.is_alive() for thread in self._threads):
                return

    def allow(self, seconds: float) -> None:
        """A new deadline, from now on."""
        self._until = time.monotonic() + seconds

    @property
    def left_seconds(self) -> float:
        return self._until - time.monotonic()

    @property
    def elapsed_seconds(self) -> float:
        return time.monotonic() - self._began

    @property
    def is_settled(self) -> bool:
        """Whether everything that was looked for has been read once. A webhook may take its time to answer."""
        return not self.seen.unread and all(isinstance(question, Probe) for question in self.seen.never_answered())

    @property
    def is_over(self) -> bool:
        """Whether the deadline has passed. The first look at everything may take a little longer."""
        return self.left_seconds <= (0 if self.is_settled else -FIRST_LOOK_SECONDS)

    def start(self) -> None:
        """Open what is to be read, and ask what is to be asked."""
        self._look_for_unserved()
        opened = (*self._open, *self._unserved)
        unread = [read for read in self.seen.unread if not any(other.includes(read) for other in opened)]
        for read in _broadened(unread, by_name=self._by_name):
            self._start_read(read)
        for question in [question for question in self.seen.unanswered if question not in self._asking]:
            self._asking.add(question)
            self._run(
                self._ask, question, self.seen.peek(question.configuration) if isinstance(question, Probe) else None
            )

    def wait(self) -> None:
        """Wait for the next change, but not beyond the deadline, and take over all that are there."""
        until = self._until if self.is_settled else self._until + FIRST_LOOK_SECONDS
        times = (until, *self._due.values(), *((self._look_again,) if self._unserved else ()))
        timeout = min(times) - time.monotonic()
        try:
            self._take(self._items.get(timeout=max(0.0, timeout)))
            while True:
                self._take(self._items.get_nowait())
        except queue.Empty:
            pass
        self._ask_again()

    def fetch(self, look: Callable[[Seen], object]) -> None:
        """Run a function until all that it reads has been read. Answers that are no are not asked again."""
        while not self.is_over:
            self.seen.look_again()
            look(self.seen)
            if self.is_settled and not self.seen.unanswered:
                return
            self.start()
            self.wait()

    # In the caller's thread.

    def _take(self, item: _Item) -> None:
        match item:
            case _Synced(read, bodies):
                self._synced.add(read)
                self.seen.cover(read, bodies)
            case _Changed(WatchedChange("DELETED", body)):
                self.seen.drop(ref_of(body))
                self._forget(str(body.get("kind")))
            case _Changed(WatchedChange("ADDED" | "MODIFIED", body)):
                self.seen.put(body)
                self._forget(str(body.get("kind")))
            case _Failed(read, why):
                self._failed(read, why)
            case _Fetched(question, answer):
                self._answered(question, answer)

    def _failed(self, read: Read, why: Exception) -> None:
        self._open.discard(read)
        if isinstance(why, RefusedRequest) and why.code in (401, 403):
            self._deny_watch(read)
            self.seen.forbid(read)
        elif isinstance(why, RefusedRequest) and why.code == 404:  # Its CRD was deleted.
            self._not_served(read)
        elif read in self._synced and not (isinstance(why, RefusedRequest) and why.code < 429):
            self.seen.uncover(read)  # The API server was there, and may come back before the deadline.
        else:
            raise CannotContinue(str(why)) from why

    def _deny_watch(self, read: Read) -> None:
        """What may not be listed may usually not be watched either, and both are needed."""
        if kind := self.client.served().find(read.group, read.kind):
            namespace = read.namespace if kind.namespaced else ""
            self.client.transport.denials[denial_of("watch", kind, namespace)] = None

    def _answered(self, question: Question, answer: Any) -> None:
        self._asking.discard(question)
        if isinstance(answer, CannotContinue):
            raise answer
        self.seen.reply(question, answer)
        if _is_no(question, answer):
            pause = self._pauses.get(question, PAUSE_SECONDS)
            self._due[question] = time.monotonic() + pause
            self._pauses[question] = min(pause * 1.5, PAUSE_SECONDS_MAX)

    def _forget(self, kind: str) -> None:
        """Ask again what this change may have changed."""
        for question, answer in self.seen.answered():
            if kind in RELATED[type(question)]:
                (self.seen.doubt if _is_no(question, answer) else self.seen.forget)(question)
                self._due.pop(question, None)

    def _ask_again(self) -> None:
        now = time.monotonic()
        for question in [question for question, due in self._due.items() if due <= now]:
            del self._due[question]
            self.seen.doubt(question)

    def _start_read(self, read: Read) -> None:
        if self.client.served().find(read.group, read.kind) is None:
            self._not_served(read)
            return
        self._open.add(read)
        self._run(self._follow, read)

    def _not_served(self, read: Read) -> None:
        """No object of the kind can exist. Discovery says when that changes."""
        self._unserved.add(read)
        self.seen.cover(read, ())
        self._look_again = time.monotonic() + UNSERVED_SECONDS

    def _look_for_unserved(self) -> None:
        if not self._unserved or time.monotonic() < self._look_again:
            return
        served = self.client.served(again=True)
        for read in [read for read in self._unserved if served.find(read.group, read.kind)]:
            self._unserved.discard(read)
            self.seen.uncover(read)
        self._look_again = time.monotonic() + UNSERVED_SECONDS

    def _run(self, function: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=function, args=arguments, daemon=True)
        self._threads = [other for other in self._threads if other.is_alive()]
        self._threads.append(thread)
        thread.start()

    # In a thread of their own.

    def _follow(self, read: Read) -> None:
        kind = self.client.served().find(read.group, read.kind)
        assert kind is not None
        listed: list[Body] | None = []
        labels = ",".join(f"{key}={value}" for key, value in read.labels)
        fields = f"metadata.name={read.name}" if read.name else ""
        namespace = read.namespace if kind.namespaced else ""
        try:
            for change in follow(self.client, kind, namespace, seconds=HORIZON_SECONDS, labels=labels, fields=fields):
                if listed is None:
                    self._items.put(_Changed(change))
                elif change.type == "SYNCED":
                    self._items.put(_Synced(read, listed))
                    listed = None
                else:
                    listed.append(change.body)
        except EXPECTED as why:
            self._put(_Failed(read, why))

    def _ask(self, question: Question, known: Body | None) -> None:
        try:
            self._put(_Fetched(question, self._answer(question, known)))
        except EXPECTED as why:
            self._put(_Fetched(question, CannotContinue(str(why))))

    def _put(self, item: _Item) -> None:
        if not self.client.transport.is_closed:  # A closed client fails, and that is no news.
            self._items.put(item)

    def _answer(self, question: Question, known: Body | None) -> Any:
        match question:
            case IsServed(group, version, kind):
                return self._served(group, version, kind)
            case KindOf(plural, group):
                kinds = self.client.served().kinds
                return next((found.kind for found in kinds if (found.plural, found.group) == (plural, group)), "")
            case Keys(secret):
                body = self._whole(secret)
                return tuple(dig(body, "data") or ()) if isinstance(body, dict) else body
            case RecordQuestion(record):
                body = self._whole(record)
                return stored_revision(body) if isinstance(body, dict) and body else FORBIDDEN
            case Probe(_, webhook):
                return probe.call(self.client, known, webhook) if known else ProbeResult(untold="it is gone")

    def _served(self, group: str, version: str, kind: str) -> str:
        """Discovery of one group-version: the whole would be large, and is often a moment older."""
        if not version:
            return "" if self.client.served().find(group, kind) else f"the cluster serves no {kind} of {group}"
        path = f"/apis/{group}/{version}" if group else f"/api/{version}"
        absent = f"{group}/{version} does not serve {kind}" if group else f"{version} does not serve {kind}"
        try:
            document = self.client.transport.send(LiveRequest("GET", path, retries=0)).body
        except RefusedRequest as refused:
            return absent if refused.code == 404 else refused.refusal.message
        return "" if any(found.kind == kind for found in from_resource_list(document)) else absent

    def _whole(self, ref: Ref) -> Any:
        """A whole Secret or ConfigMap. Only its keys, or the objects of a Helm release, are kept."""
        kind = self.client.served().find(ref.group, ref.kind)
        assert kind is not None
        path, denial = path_of(kind, ref.namespace, ref.name), denial_of("get", kind, ref.namespace)
        try:
            return self.client.transport.send(LiveRequest("GET", path, denial=denial)).body
        except RefusedRequest as refused:
            if refused.code == 404:
                return {}
            if refused.code == 403:
                return FORBIDDEN
            raise


def _broadened(reads: Iterable[Read], *, by_name: bool) -> list[Read]:
    """Reads of several names of a kind as one read of all of them, so that there is one list and one watch."""
    alike: dict[tuple[str, str, str], list[Read]] = {}
    for read in sorted(reads):
        alike.setdefault((read.kind, read.group, read.namespace), []).append(read)
    return [
        found[0] if len(found) == 1 and (by_name or not found[0].name) else Read(kind, group, namespace)
        for (kind, group, namespace), found in alike.items()
    ]


def _is_no(question: Question, answer: Any) -> bool:
    match answer:
        case str() if isinstance(question, IsServed):
            return bool(answer)
        case ProbeResult(error=error):
            return bool(error)
    return False
