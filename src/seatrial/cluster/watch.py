"""Watches: what a client has asked to be told. Knows nothing of sockets; whoever carries the events sets `wake`."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

import msgspec

from seatrial.cluster.refusal import Refused, gone
from seatrial.cluster.request import Request
from seatrial.cluster.store import Change, KindKey, Store
from seatrial.cluster.validation.gotext import quoted
from seatrial.cluster.verbs.fieldselector import field_test, named
from seatrial.cluster.verbs.labelselector import label_test
from seatrial.kinds.tables.catalogue import ServedKind
from seatrial.model.resource import Body, Ref

INITIAL_EVENTS_END = "k8s.io/initial-events-end"


class Watch:
    """One open watch and the events that its client has not read yet."""

    def __init__(self, kind: ServedKind, request: Request) -> None:
        self.kind = kind
        self.request = request
        self.events: deque[Body] = deque()
        self.told: dict[str, Body] = {}
        """What the client knows of what is there, by uid."""
        self.lists_first = False
        """Whether it begins with what is there."""
        self.wake: Callable[[], None] = _nobody
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

    def tell(self, type_: str, body: Body) -> None:
        self.events.append({"type": type_, "object": in_version(body, self.kind)})

    def tell_change(self, change: Change) -> None:
        """A change as this client sees it: leaving the selection is a deletion, entering it an addition."""
        now = change.type != "DELETED" and self.fits(change.body)
        before = change.before is not None and self.fits(change.before)
        if now:
            self.tell("MODIFIED" if before else "ADDED", change.body)
        elif before:
            self.tell("DELETED", change.body)

    def pass_on(self) -> Body:
        """The next event, which the client knows from now on."""
        event = self.events.popleft()
        body = event["object"]
        if event["type"] == "DELETED":
            self.told.pop(body["metadata"]["uid"], None)
        elif event["type"] != "BOOKMARK":
            self.told[body["metadata"]["uid"]] = body
        return event

    def freshen(self, version: int) -> None:
        """Tell what was there when the watch began as it is by now, unless something went that has to be told.

        A list may be newer than whoever asked for it. And clients look into everything that they find unfinished, at
        most five times a second: what is finished by now need not be shown to them half done.
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
    """Every open watch, by the kind and the namespace it is about."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._open: dict[tuple[KindKey, str], set[Watch]] = {}
        self._told = store.version

    def open(self, kind: ServedKind, request: Request, *, initial_events: bool | None, bookmarks: bool) -> Watch:
        """`initial_events`: whether what is there is told first; None leaves it to the version that is asked for."""
        watch = Watch(kind, request)
        key = (kind.group, kind.kind)
        version = request.resource_version
        if initial_events or (initial_events is None and version in ("", "0")):
            watch.lists_first = True
            self._tell_all(watch, key)
            if initial_events and bookmarks:
                watch.bookmark(self._store.version, initial_end=True)
        elif version not in ("", "0"):
            self._replay(watch, key, version)
        self._open.setdefault((key, request.namespace), set()).add(watch)
        return watch

    def close(self, watch: Watch) -> None:
        key = (watch.kind.group, watch.kind.kind)
        self._open.get((key, watch.request.namespace), set()).discard(watch)

    def waiting(self) -> Iterable[Watch]:
        return (watch for found in self._open.values() for watch in found)

    def changed(self) -> None:
        """Pass on what the store has logged since the last time."""
        log = self._store.log
        fresh = [log[-1]] if log and log[-1].version == self._told + 1 else self._since_told()
        self._told = self._store.version
        for change in fresh:
            for watch in self._about(change):
                before = len(watch.events)
                watch.tell_change(change)
                if len(watch.events) != before:
                    watch.wake()

    def _about(self, change: Change) -> tuple[Watch, ...]:
        """The watches that a change may concern: those of its namespace, and those of all."""
        home = change.body["metadata"].get("namespace", "")
        everywhere = self._open.get((change.kind, ""), ())
        return (*everywhere, *self._open.get((change.kind, home), ())) if home else tuple(everywhere)

    def _since_told(self) -> list[Change]:
        return list(self._store.since(self._told) or ())

    def _tell_all(self, watch: Watch, key: KindKey) -> None:
        for body in self._store.of_kind(key, watch.request.namespace):
            if watch.fits(body):
                watch.tell("ADDED", body)

    def _replay(self, watch: Watch, key: KindKey, version: str) -> None:
        if not (version.isascii() and version.isdigit()):
            words = f"strconv.ParseUint: parsing {quoted(version)}: invalid syntax"
            raise Refused(500, "", f"resourceVersion: Invalid value: {quoted(version)}: {words}")
        changes = self._store.since(int(version[:20]))
        if changes is None:
            raise gone(f"too old resource version: {version} ({self._store.version})")
        for change in changes:
            if change.kind == key:
                watch.tell_change(change)


def targets(watch: Watch, store: Store) -> list[Ref]:
    """The objects that a client which opened this watch may be waiting for."""
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


def in_version(body: Body, kind: ServedKind) -> Body:
    """The object as this version of its API shows it."""
    wanted = kind.api_version
    return body if body.get("apiVersion") == wanted else {**body, "apiVersion": wanted}


def encoded(event: Body) -> bytes:
    return msgspec.json.encode(event) + b"\n"


def _nobody() -> None:
    """No one carries the events yet."""
