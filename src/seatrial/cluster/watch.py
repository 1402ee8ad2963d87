"""Watches: the events that clients requested. Knows nothing of sockets; the transport sets `wake`."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

import msgspec

from seatrial.cluster.refusal import Refused, gone
from seatrial.cluster.request import Request
from seatrial.cluster.store import KindKey, Store, StoreChange
from seatrial.cluster.verbs.fieldselector import field_test, named
from seatrial.cluster.verbs.labelselector import label_test
from seatrial.kinds.tables.catalogue import ServedKind
from seatrial.model.resource import Body, Ref
from seatrial.text.gotext import quoted

INITIAL_EVENTS_END = "k8s.io/initial-events-end"


class Watch:
    """One open watch and the events that its client has not read yet."""

    def __init__(self, kind: ServedKind, request: Request) -> None:
        self.kind = kind
        self.request = request
        self.events: deque[Body] = deque()
        self.seen: dict[str, Body] = {}
        """The last object that was sent to the client, by uid."""
        self.lists_first = False
        """Whether it begins with the existing objects."""
        self.wake: Callable[[], None] = _no_transport
        self._labels = label_test(request.label_selector)
        self._fields = field_test(request.field_selector, kind)
        self._name = request.name or named(request.field_selector)

    def fits(self, body: Body) -> bool:
        meta = body["metadata"]
        if self.request.namespace and meta.get("namespace") != self.request.namespace:
            return False
        if self._name and meta.get("name") != self._name:
            return False
        return self._labels(body) and self._fields(body)

    def close(self) -> None:
        """Forget the transport and what was not read; what was seen stays."""
        self.wake = _no_transport
        self.events.clear()

    def send(self, type_: str, body: Body) -> None:
        self.events.append({"type": type_, "object": in_version(body, self.kind)})

    def send_change(self, change: StoreChange) -> None:
        """A change as this client sees it: leaving the selection is a deletion, entering it an addition."""
        now = change.type != "DELETED" and self.fits(change.body)
        before = change.before is not None and self.fits(change.before)
        if now:
            self.send("MODIFIED" if before else "ADDED", change.body)
        elif before:
            self.send("DELETED", change.body)

    def next_event(self) -> Body:
        """Take the next event, which the client has seen from now on."""
        event = self.events.popleft()
        body = event["object"]
        if event["type"] == "DELETED":
            self.seen.pop(body["metadata"]["uid"], None)
        elif event["type"] != "BOOKMARK":
            self.seen[body["metadata"]["uid"]] = body
        return event

    def refresh(self, version: int) -> None:
        """Replace the initial events by the current objects, unless there was a deletion that the client must see.

        A list may be newer than the request. Clients examine every unfinished object, at most five times a second, so
        an object that is finished by now need not be shown unfinished.
        """
        if not self.lists_first or any(event["type"] == "DELETED" for event in self.events):
            return
        latest = {o["metadata"]["uid"]: o for e in self.events if e["type"] != "BOOKMARK" for o in (e["object"],)}
        bookmarked = any(event["type"] == "BOOKMARK" for event in self.events)
        self.events.clear()
        self.events.extend({"type": "ADDED", "object": body} for body in latest.values())
        if bookmarked:
            self.bookmark(version, initial_end=True)

    def bookmark(self, version: int, *, initial_end: bool = False) -> None:
        meta: Body = {"resourceVersion": str(version), "creationTimestamp": None}
        if initial_end:
            meta["annotations"] = {INITIAL_EVENTS_END: "true"}
        body = {"kind": self.kind.kind, "apiVersion": self.kind.api_version, "metadata": meta}
        self.events.append({"type": "BOOKMARK", "object": body})


class Watches:
    """Every open watch, by kind and namespace."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._open: dict[tuple[KindKey, str], set[Watch]] = {}
        self._sent_version = store.version

    def open(self, kind: ServedKind, request: Request, *, initial_events: bool | None, bookmarks: bool) -> Watch:
        """`initial_events`: whether to send existing objects first; None decides by the requested resourceVersion."""
        watch = Watch(kind, request)
        key = (kind.group, kind.kind)
        version = request.resource_version
        if initial_events or (initial_events is None and version in ("", "0")):
            watch.lists_first = True
            self._send_all(watch, key)
            if initial_events and bookmarks:
                watch.bookmark(self._store.version, initial_end=True)
        elif version not in ("", "0"):
            self._replay(watch, key, version)
        self._open.setdefault((key, request.namespace), set()).add(watch)
        return watch

    def close(self, watch: Watch) -> None:
        key = (watch.kind.group, watch.kind.kind)
        self._open.get((key, watch.request.namespace), set()).discard(watch)
        watch.close()

    def waiting(self) -> Iterable[Watch]:
        return (watch for found in self._open.values() for watch in found)

    def changed(self) -> None:
        """Send what the store has logged since the last call."""
        log = self._store.log
        unsent = [log[-1]] if log and log[-1].version == self._sent_version + 1 else self._unsent()
        self._sent_version = self._store.version
        for change in unsent:
            for watch in self._watches_for(change):
                before = len(watch.events)
                watch.send_change(change)
                if len(watch.events) != before:
                    watch.wake()

    def _watches_for(self, change: StoreChange) -> tuple[Watch, ...]:
        """The watches that a change may concern: those of its namespace, and those of all namespaces."""
        namespace = change.body["metadata"].get("namespace", "")
        everywhere = self._open.get((change.kind, ""), ())
        return (*everywhere, *self._open.get((change.kind, namespace), ())) if namespace else tuple(everywhere)

    def _unsent(self) -> list[StoreChange]:
        return list(self._store.since(self._sent_version) or ())

    def _send_all(self, watch: Watch, key: KindKey) -> None:
        for body in self._store.of_kind(key, watch.request.namespace):
            if watch.fits(body):
                watch.send("ADDED", body)

    def _replay(self, watch: Watch, key: KindKey, version: str) -> None:
        if not (version.isascii() and version.isdigit()):
            detail = f"strconv.ParseUint: parsing {quoted(version)}: invalid syntax"
            raise Refused(500, "", f"resourceVersion: Invalid value: {quoted(version)}: {detail}")
        changes = self._store.since(int(version[:20]))
        if changes is None:
            raise gone(f"too old resource version: {version} ({self._store.version})")
        for change in changes:
            if change.kind == key:
                watch.send_change(change)


def targets(watch: Watch, store: Store) -> list[Ref]:
    """The objects that the client of this watch may be waiting for."""
    kind = watch.kind
    name = watch.request.name or named(watch.request.field_selector)
    if name:
        return [Ref(kind.kind, watch.request.namespace, name, kind.group)]
    found = store.of_kind((kind.group, kind.kind), watch.request.namespace)
    return [
        Ref(kind.kind, body["metadata"].get("namespace", ""), body["metadata"]["name"], kind.group)
        for body in found
        if watch.fits(body)
    ]


def unready(
    watch: Watch, store: Store, is_ready: Callable[[Body], bool | None], expected: Iterable[Ref] = ()
) -> list[Ref]:
    """The objects that a client waits for and that are not ready for it yet.

    `expected`: all of them, if that is known. A client may open several watches at once, in any order; what the cluster
    does for it must not depend on which comes first.
    """
    awaited = [ref for ref in expected if store.get(ref) is not None] or targets(watch, store)
    found = ((ref, store.get(ref)) for ref in awaited)
    return [ref for ref, body in found if body is None or not is_ready(body)]


def in_version(body: Body, kind: ServedKind) -> Body:
    """The object in this version of its API."""
    wanted = kind.api_version
    return body if body.get("apiVersion") == wanted else {**body, "apiVersion": wanted}


def encoded(event: Body) -> bytes:
    return msgspec.json.encode(event) + b"\n"


def _no_transport() -> None:
    """No transport yet."""
