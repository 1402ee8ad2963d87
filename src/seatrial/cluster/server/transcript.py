"""The requests of a client and their responses, so that they can be replayed on another cluster without the client.

A client is a function of its input and of the API's responses. If a second cluster responds in the same way, the client
sends the same requests and gets the same result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice, takewhile
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from seatrial.cluster import stuck, watch
from seatrial.cluster.cluster import Cluster
from seatrial.cluster.request import Request
from seatrial.cluster.server.connection import objects_of
from seatrial.cluster.server.responses import HttpRequest, HttpResponse, reply_to
from seatrial.cluster.watch import Watch
from seatrial.helm import records
from seatrial.model.resource import Body, Ref, listed, uid_of
from seatrial.model.timeline import Event

VOLATILE = frozenset(
    (
        "resourceVersion",
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "time",
        "startTime",
        "startedAt",
        "finishedAt",
        "completionTime",
        "lastTransitionTime",
        "lastUpdateTime",
        "lastProbeTime",
    )
)
"""Counters and times of a cluster: only whether they are set is compared."""
PROGRESS_PATHS = ("/pods", "/replicasets")
"""Paths that are listed by label only to follow the progress of a wait."""
DISCOVERY = ("/api", "/apis", "/version")
OPENAPI = "/openapi/"
GROUPS = "/apis"
TOO_LATE = "ProgressDeadlineExceeded"
FAILED = (("Failed", "True"), ("Stalled", "True"), ("NamesAccepted", "False"))
"""Conditions of objects that do not become ready any more."""
CRD_GROUP = "apiextensions.k8s.io"
CRDS = f"/apis/{CRD_GROUP}/v1/customresourcedefinitions/"
APPLIED = frozenset((200, 201))
"""An applied object was there, or was not. Clients read the object alone (`Patch` of cli-runtime and of client-go)."""


class ReplayDiffers(Exception):
    """This cluster responds differently, so the client itself must run."""


class Answered(Struct, frozen=True):
    request: HttpRequest
    response: HttpResponse
    polled: tuple[Ref, ...]
    """The objects that the client waited for with this request."""
    parsed: list[Request] = []
    """What the request is, once it was replayed."""

    @property
    def follows_progress(self) -> bool:
        request = self.request
        return request.method == "GET" and request.path.endswith(PROGRESS_PATHS) and "labelSelector=" in request.query

    @property
    def reads_discovery(self) -> bool:
        path = self.request.path
        return self.request.method == "GET" and (path in DISCOVERY or path.startswith(OPENAPI))

    @property
    def is_applied_crd(self) -> bool:
        return self.request.method == "PATCH" and self.request.path.startswith(CRDS)

    @property
    def batch(self) -> tuple[str, str] | None:
        """The method and the collection of a write; None for a read, and for Helm's own records."""
        method, path = self.request.method, self.request.path
        if method not in ("PATCH", "DELETE") or records.NAME.search(path):
            return None
        return method, path.rpartition("/")[0]


class Watched(Struct, frozen=True):
    opened: Watch
    is_ready: Callable[[Body], bool | None]
    """When the client stopped waiting for an object."""
    expected: tuple[Ref, ...]
    """The objects that it waited for, with this watch and with others."""


class AddedWait(Struct, frozen=True):
    """A wait that the client of a recording did not have, and adds here with another option."""

    is_content: Callable[[Body | None], bool]
    """Whether the wait for an object ends well."""
    is_ready: Callable[[Body], bool | None]
    """Whether it ends at all."""
    expected: Callable[[Iterable[Event]], list[Ref]]
    """What the client waits for, by what it has written so far."""
    path: str = ""
    """Of the object that it waits for, where that is not what is expected."""

    def replay(self, cluster: Cluster, written: list[Event]) -> None:
        """Wait with a watch for each kind and namespace. Raises `ReplayDiffers` unless that is enough."""
        expected = self.expected(written)
        targets = objects_of(cluster, self.path) if self.path else expected
        for ref in {(ref.group, ref.kind, ref.namespace): ref for ref in targets}.values():
            kind = cluster.discovery.of_kind(ref.group, ref.kind)
            if kind is None:
                raise ReplayDiffers(f"wait for {ref}")
            opened = Watch(kind, Request("watch", kind.group, kind.version, kind.plural, ref.namespace))
            cluster.awaits(watch.unready(opened, cluster.store, self.is_ready, expected))
        if not targets or not all(self.is_content(cluster.store.get(ref)) for ref in targets):
            raise ReplayDiffers("wait")


class ClientWait(Struct):
    """A moment at which a client had waited for so long that only time could help, and whether it did."""

    waited: tuple[Ref, ...]
    is_ready: Callable[[Body], bool | None]
    refs: tuple[Ref, ...]
    """What was not ready of what it waited for."""
    why: str
    patience_seconds: float
    certain: bool
    ends: bool = False

    def replay(self, cluster: Cluster) -> None:
        """Wait here as well: for the same, with the same end."""
        refs = stuck.stuck_on(cluster, self.waited, self.is_ready, certain=self.certain)
        if tuple(refs) != self.refs or stuck.why(cluster, refs) != self.why:
            raise ReplayDiffers("hang")
        if stuck.wait_out(cluster, refs, self.patience_seconds, self.is_ready)[1] != self.ends:
            raise ReplayDiffers("deadline")
        if not self.ends:
            cluster.recorder.give_up()


TranscriptLine = Answered | Watched | AddedWait | ClientWait


class Transcript:
    """The requests of one client to one cluster, in order."""

    def __init__(self, shared: dict[bytes, bytes]) -> None:
        """`shared`: the bodies of this and of other transcripts, so that equal ones are kept once."""
        self.lines: list[TranscriptLine] = []
        self._shared = shared

    def answered(self, request: HttpRequest, response: HttpResponse, polled: Iterable[Ref] = ()) -> None:
        body = self._shared.setdefault(response.body, response.body)
        line = Answered(request, replace(response, body=body), tuple(polled))
        if not line.follows_progress:
            self.lines.append(line)

    def watched(self, opened: Watch, is_ready: Callable[[Body], bool | None], expected: tuple[Ref, ...]) -> None:
        self.lines.append(Watched(opened, is_ready, expected))

    def waited(self, wait: ClientWait) -> None:
        self.lines.append(wait)

    def with_lines(self, lines: Iterable[TranscriptLine]) -> Transcript:
        """The same with other lines."""
        found = Transcript(self._shared)
        found.lines.extend(lines)
        return found

    def replay(self, cluster: Cluster) -> None:
        """Send all requests again, and wait where the client waited. Raises `ReplayDiffers` if a response differs.

        What a watch shows is compared before the next request, when the client had seen enough. A client that waited
        forever must do so here; what it watched is not compared then, because it may not have opened all of its
        watches. Ends with the client, if it dies on the way.
        """
        watches: list[Watched] = []
        gave_up = False
        start = cluster.recorder.count
        lines = list(_by_name(self.lines)) if cluster.death.counts else self.lines
        for index, line in enumerate(lines):
            if cluster.death.at is not None:
                return
            if isinstance(line, ClientWait):
                line.replay(cluster)
                gave_up = gave_up or not line.ends
            elif isinstance(line, AddedWait):
                line.replay(cluster, cluster.recorder.written_since(start, _actor(lines)))
            elif isinstance(line, Watched):
                opened = line.opened
                cluster.awaits(watch.unready(opened, cluster.store, line.is_ready, line.expected))
                watches.append(line)
            else:
                _compare_watches(() if gave_up else watches, cluster)
                watches.clear()
                if line.polled:
                    cluster.awaits(line.polled)
                _compare(line, cluster, _groups_mapped(lines, index))
        _compare_watches(() if gave_up else watches, cluster)


def _actor(lines: Iterable[TranscriptLine]) -> str:
    return next((line.request.actor for line in lines if isinstance(line, Answered)), "")


def _by_name(lines: Iterable[TranscriptLine]) -> Iterator[TranscriptLine]:
    """Lines in which writes that follow each other for one kind, which a client sends side by side, come by name."""
    together: list[Answered] = []
    for line in lines:
        if isinstance(line, Answered) and line.reads_discovery:
            yield line
        elif isinstance(line, Answered) and line.batch and (not together or together[0].batch == line.batch):
            together.append(line)
        else:
            yield from sorted(together, key=lambda one: one.request.path)
            together = [line] if isinstance(line, Answered) and line.batch else []
            if not together:
                yield line
    yield from sorted(together, key=lambda one: one.request.path)


def _compare_watches(watches: Iterable[Watched], cluster: Cluster) -> None:
    for line in watches:
        _compare_watch(line, cluster)


def _groups_mapped(lines: Sequence[TranscriptLine], index: int) -> frozenset[str] | None:
    """The API groups that a client looks up in what discovery answers, where that is certain; else None.

    `newStatusWatcher` in pkg/kube/client.go of Helm 4 creates a mapper for one wait, which knows what is watched right
    after it; unlike others, it asks without a timeout. `installCRDs` in pkg/action/install.go maps CRDs alone, and has
    everything read again after it.
    """
    line = lines[index]
    if not isinstance(line, Answered) or line.request.method != "GET" or line.request.path != GROUPS:
        return None
    following = islice(lines, index + 1, None)
    if not line.request.query:
        watched = takewhile(lambda one: isinstance(one, Watched), following)
        return frozenset(one.opened.kind.group for one in watched if isinstance(one, Watched)) or None
    answered = (one for one in following if isinstance(one, Answered))
    applied = list(takewhile(lambda one: not one.reads_discovery, answered))
    return frozenset((CRD_GROUP,)) if applied and all(one.is_applied_crd for one in applied) else None


def _compare(line: Answered, cluster: Cluster, groups: frozenset[str] | None) -> None:
    request, recorded = line.request, line.response
    response = reply_to(cluster, request, line.parsed)
    if response == recorded:
        return
    codes = {response.code, recorded.code}
    same_code = len(codes) == 1 or (codes <= APPLIED and request.method == "PATCH")
    if not same_code or response.warnings != recorded.warnings or not _same(response.body, recorded.body, groups):
        raise ReplayDiffers(f"{request.method} {request.path}")


def _same(one: bytes, other: bytes, groups: frozenset[str] | None) -> bool:
    """Whether a client that does not wait takes these responses alike; of discovery it reads `groups` only."""
    here, there = _content(one), _content(other)
    if _alike(here, there):
        return True
    if groups is not None:
        return _in_groups(here, groups) == _in_groups(there, groups)
    return _timeless(_comparable(here)) == _timeless(_comparable(there))


def _in_groups(listed: object, groups: frozenset[str]) -> object:
    if not isinstance(listed, dict):
        return listed
    return [item for item in listed.get("items") or () if item["metadata"]["name"] in groups]


def _timeless(content: object) -> object:
    """The same with records of Helm by what they say, without when."""
    if not isinstance(content, dict):
        return content
    if "items" in content:
        return {**content, "items": [_timeless(item) for item in content["items"]]}
    return records.without_times(content) if content.get("type") == records.TYPE else content


def _compare_watch(line: Watched, cluster: Cluster) -> None:
    """The objects must be those that the client saw last, or those that it waited for must be ready again.

    It continued when it saw them, and saw others only as far as it had read.
    """
    request, kind = line.opened.request, line.opened.kind
    with cluster.lock:
        found = cluster.store.of_kind((kind.group, kind.kind), request.namespace)
        here = [body for body in found if line.opened.fits(body)]
    seen = list(line.opened.seen.values())
    of_kind = (ref for ref in line.expected if (ref.group, ref.kind) == (kind.group, kind.kind))
    expected = {(ref.namespace, ref.name) for ref in of_kind if request.namespace in ("", ref.namespace)}
    if expected and _all_ready(here, expected, line.is_ready) and _all_ready(seen, expected, line.is_ready):
        return
    if not _all_alike(here, seen):
        raise ReplayDiffers(f"watch {kind.kind}")


def _all_ready(bodies: Iterable[Body], expected: set[tuple[str, str]], is_ready: Callable[[Body], bool | None]) -> bool:
    return expected <= {_full_name(body) for body in bodies if is_ready(body) and not _has_failed(body)}


def _has_failed(body: Body) -> bool:
    """A client stops waiting for what has failed as well, with an error."""
    status = body.get("status") or {}
    return status.get("phase") == "Failed" or any(
        (one.get("type"), one.get("status")) in FAILED or one.get("reason") == TOO_LATE
        for one in listed(status, "conditions")
    )


def _full_name(body: Body) -> tuple[str, str]:
    return body["metadata"].get("namespace", ""), body["metadata"]["name"]


def _content(data: bytes) -> object:
    """The content of a response for a client that does not wait: without status."""
    try:
        body = msgspec.json.decode(data)
    except msgspec.DecodeError:
        return data
    if not isinstance(body, dict):
        return body
    if "items" in body:
        return {**body, "metadata": {}, "items": [_without_status(item) for item in body["items"]]}
    return _without_status(body)


def _without_status(body: Body) -> Body:
    rest = {key: value for key, value in body.items() if key != "status"}
    meta = rest.get("metadata")
    if isinstance(meta, dict) and "managedFields" in meta:
        others = [entry for entry in meta["managedFields"] if entry.get("subresource") != "status"]
        rest["metadata"] = {**meta, "managedFields": others}
    return rest


def _alike(one: object, other: object) -> bool:
    """Whether two objects, or two lists of them, are the same but for counters and times."""
    if one == other:
        return True
    if isinstance(one, dict) and isinstance(other, dict) and "items" in one and "items" in other:
        return {**one, "items": ()} == {**other, "items": ()} and _all_alike(one["items"], other["items"])
    return _is_same(one, other, _uid(one), _uid(other))


def _all_alike(ones: list[Any], others: list[Any]) -> bool:
    return len(ones) == len(others) and all(map(_alike, ones, others))


def _uid(value: object) -> str:
    """The uid of an object, which may also be in its labels."""
    return (uid_of(value) if isinstance(value, dict) else "") or "\0"


def _is_same(one: Any, other: Any, uid: str, other_uid: str) -> bool:
    """Whether values are equal without counters and times. Only what differs is looked into."""
    if one == other:
        return True
    match one, other:
        case dict(), dict():
            return one.keys() == other.keys() and all(
                bool(value) == bool(other[key]) if key in VOLATILE else _is_same(value, other[key], uid, other_uid)
                for key, value in one.items()
            )
        case list(), list():
            return len(one) == len(other) and all(
                _is_same(mine, theirs, uid, other_uid) for mine, theirs in zip(one, other, strict=True)
            )
        case str(), str():
            return one.replace(uid, "") == other.replace(other_uid, "")
    return False


def _comparable(content: object) -> object:
    """An object, or a list of them, without counters and times."""
    if isinstance(content, dict) and "items" in content:
        return {**content, "items": [_comparable(item) for item in content["items"]]}
    return _without_volatile(content, _uid(content))


def _without_volatile(value: Any, uid: str) -> Any:
    match value:
        case dict():
            return {k: bool(v) if k in VOLATILE else _without_volatile(v, uid) for k, v in value.items()}
        case list():
            return [_without_volatile(item, uid) for item in value]
        case str():
            return value.replace(uid, "")
    return value
