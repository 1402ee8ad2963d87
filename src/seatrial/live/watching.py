"""Objects of a kind, and every change to them: one list and one watch, whatever happens to the connection."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator
from typing import Any, Literal

import msgspec
from msgspec import Struct

from seatrial.kinds.tables.catalogue import ServedKind
from seatrial.live.client import METADATA_LIST, Client, denial_of, is_secret, partial_of, path_of, selectors
from seatrial.live.transport import JSON, Disconnected, LiveRequest, RefusedRequest, status_refusal
from seatrial.model.resource import Body, dig, metadata, name_of

WATCH_SECONDS_MAX = 300
"""After this time the API server ends a watch, which is then resumed."""
SLACK_SECONDS = 15
"""How much later a server may end it before the connection counts as lost."""
FAILURES_MAX = 8
"""Watches in a row that break off before any event."""
PAUSE_SECONDS_MAX = 5.0
METADATA_EVENT = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"

ChangeType = Literal["ADDED", "MODIFIED", "DELETED", "SYNCED"]


class WatchedChange(Struct, frozen=True):
    """An object that was found, changed or deleted; `SYNCED` once all objects of a list were sent."""

    type: ChangeType
    body: Body = msgspec.field(default_factory=dict)


Key = tuple[str, str]


def follow(
    client: Client,
    kind: ServedKind,
    namespace: str = "",
    *,
    seconds: float,
    labels: str = "",
    fields: str = "",
    metadata_only: bool = False,
) -> Iterator[WatchedChange]:
    """The objects as they are, `SYNCED`, then every change, until `seconds` have passed or the client is closed.

    A watch that is cut off is resumed where it was. If that is too long ago (410), a new list says what has changed.
    """
    yield from _Following(client, kind, namespace, seconds, selectors(labels, fields), metadata_only).changes()


class _Following:
    """State over time: the version reached, and the names that are there."""

    def __init__(
        self,
        client: Client,
        kind: ServedKind,
        namespace: str,
        seconds: float,
        selected: dict[str, str],
        metadata_only: bool,
    ) -> None:
        self._client = client
        self._kind = kind
        self._namespace = namespace
        self._selected = selected
        self._partial = metadata_only or is_secret(kind)
        self._until = time.monotonic() + seconds
        self._known: dict[Key, Body] = {}
        self._version = ""
        self._failures = 0

    def changes(self) -> Iterator[WatchedChange]:
        while self._left() > 0 and not self._client.transport.is_closed:
            try:
                if not self._version:
                    yield from self._listed()
                yield from self._watched()
                self._failures = 0
            except Disconnected as why:
                self._failed(why)
            except RefusedRequest as refused:
                self._refused(refused)

    def _left(self) -> float:
        return self._until - time.monotonic()

    def _listed(self) -> Iterator[WatchedChange]:
        """All objects, and what is gone since the last list."""
        gone = dict(self._known)
        pages = self._client.pages(
            self._kind,
            self._namespace,
            labels=self._selected.get("labelSelector", ""),
            fields=self._selected.get("fieldSelector", ""),
            accept=METADATA_LIST if self._partial else JSON,
        )
        for page in pages:
            self._version = str(dig(page, "metadata", "resourceVersion") or "")
            for item in page.get("items") or ():
                body = self._shown(item)
                type_: ChangeType = "MODIFIED" if gone.pop(_key(body), None) else "ADDED"
                self._known[_key(body)] = _name_only(body)
                yield WatchedChange(type_, body)
        for key, body in gone.items():
            del self._known[key]
            yield WatchedChange("DELETED", body)
        yield WatchedChange("SYNCED")

    def _watched(self) -> Iterator[WatchedChange]:
        seconds = max(1, min(WATCH_SECONDS_MAX, math.ceil(self._left())))
        query: dict[str, str | int] = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": self._version,
            "timeoutSeconds": seconds,
            **self._selected,
        }
        request = LiveRequest(
            "GET",
            path_of(self._kind, self._namespace),
            query,
            accept=METADATA_EVENT if self._partial else JSON,
            denial=denial_of("watch", self._kind, self._namespace),
        )
        for line in self._client.transport.lines(request, min(self._left(), seconds) + SLACK_SECONDS):
            if (change := self._read(_event(line))) is not None:
                self._failures = 0
                yield change
            if self._left() <= 0:
                return

    def _read(self, event: Body) -> WatchedChange | None:
        type_, body = event.get("type"), event.get("object")
        if not isinstance(body, dict):
            raise Disconnected("an event without an object")
        if type_ == "ERROR":
            raise RefusedRequest(f"watch {self._kind.plural}", status_refusal(body))
        self._version = str(metadata(body).get("resourceVersion") or self._version)
        if type_ not in ("ADDED", "MODIFIED", "DELETED"):  # BOOKMARK, and what later versions add
            return None
        shown = self._shown(body)
        if type_ == "DELETED":
            self._known.pop(_key(shown), None)
        else:
            self._known[_key(shown)] = _name_only(shown)
        return WatchedChange(type_, shown)

    def _shown(self, body: Body) -> Body:
        if self._partial:
            return partial_of(body, self._kind)
        return {"apiVersion": self._kind.api_version, "kind": self._kind.kind, **body}

    def _refused(self, refused: RefusedRequest) -> None:
        """Go on after an expired version (a new list) or a fault of the server; give up otherwise."""
        if refused.code in (410, 504) or refused.refusal.reason in ("Expired", "Gone"):
            self._version = ""
        elif refused.code not in (429, 500, 502, 503):
            raise refused
        self._failed(refused)

    def _failed(self, why: Exception) -> None:
        if self._client.transport.is_closed:
            return
        self._failures += 1
        if self._failures > FAILURES_MAX:
            raise why
        # The first failure is resumed at once: load balancers cut idle connections.
        pause = min(PAUSE_SECONDS_MAX, 0.1 * (2 ** (self._failures - 1) - 1))
        threading.Event().wait(max(0.0, min(pause, self._left())))


def _event(line: bytes) -> Body:
    try:
        event: Any = msgspec.json.decode(line)
    except msgspec.DecodeError:
        raise Disconnected("half of an event") from None
    if not isinstance(event, dict):
        raise Disconnected("half of an event")
    return event


def _key(body: Body) -> Key:
    return str(metadata(body).get("namespace") or ""), name_of(body)


def _name_only(body: Body) -> Body:
    """What is remembered of an object, so that memory does not grow with its size."""
    meta = metadata(body)
    kept = {key: meta[key] for key in ("name", "namespace", "uid") if key in meta}
    return {"apiVersion": body.get("apiVersion"), "kind": body.get("kind"), "metadata": kept}
