"""What a client asked and what it was told, so that another cluster can be asked the same without the client.

A client is a function of its input and of what the API tells it. Where a second cluster tells it nothing else, it asks
for nothing else there and comes to the same end.
"""

from __future__ import annotations

from typing import Any

import msgspec

from seatrial.cluster.cluster import Cluster
from seatrial.cluster.server.answers import Answer, Asked, reply_to
from seatrial.cluster.watch import Watch
from seatrial.model.resource import Body

DIFFERS_ANYWAY = frozenset(
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
"""Counters and clocks of a cluster: that these are set counts, and not to what."""
LOOKED_AFTER = ("/pods", "/replicasets")
"""What is listed by label only to see how a wait gets on."""


class Differs(Exception):
    """The client was told something else here; nobody but itself can say what it would do."""


class Transcript:
    """What one client has asked of one cluster, in order."""

    def __init__(self) -> None:
        self._lines: list[tuple[Asked, Answer] | Watch] = []

    def answered(self, asked: Asked, answer: Answer) -> None:
        self._lines.append((asked, answer))

    def watched(self, opened: Watch) -> None:
        self._lines.append(opened)

    def put_to(self, cluster: Cluster) -> None:
        """Ask everything again; raises `Differs` where the client would be told something else."""
        for line in self._lines:
            if isinstance(line, Watch):
                _compare_watch(line, cluster)
            else:
                _compare(*line, cluster)


def _compare(asked: Asked, told: Answer, cluster: Cluster) -> None:
    if asked.method == "GET" and asked.path.endswith(LOOKED_AFTER) and "labelSelector=" in asked.query:
        return
    answer = reply_to(cluster, asked)
    if answer == told:
        return
    if (answer.code, answer.warnings) != (told.code, told.warnings) or _said(answer.body) != _said(told.body):
        raise Differs(f"{asked.method} {asked.path}")


def _compare_watch(told: Watch, cluster: Cluster) -> None:
    """What is there must be what the client was told last: it went on when it saw that."""
    request, kind = told.request, told.kind
    with cluster.lock:
        found = cluster.store.of_kind((kind.group, kind.kind), request.namespace)
        here = [_comparable(body) for body in found if told.fits(body)]
    if here != [_comparable(body) for body in told.told.values()]:
        raise Differs(f"watch {kind.kind}")


def _said(data: bytes) -> object:
    """What an answer says to a client that does not wait: not how far the objects are."""
    try:
        body = msgspec.json.decode(data)
    except msgspec.DecodeError:
        return data
    if not isinstance(body, dict):
        return body
    if "items" in body:
        return {**body, "metadata": {}, "items": [_unfinished(item) for item in body["items"]]}
    return _unfinished(body)


def _unfinished(body: Body) -> object:
    spoken = {key: value for key, value in body.items() if key != "status"}
    meta = spoken.get("metadata")
    if isinstance(meta, dict) and "managedFields" in meta:
        others = [entry for entry in meta["managedFields"] if entry.get("subresource") != "status"]
        spoken["metadata"] = {**meta, "managedFields": others}
    return _comparable(spoken)


def _comparable(body: Body) -> object:
    """An object with its counters and clocks stopped; its own uid may also be among its labels."""
    return _stopped(body, str((body.get("metadata") or {}).get("uid") or "\0"))


def _stopped(value: Any, uid: str) -> Any:
    match value:
        case dict():
            return {k: bool(v) if k in DIFFERS_ANYWAY else _stopped(v, uid) for k, v in value.items()}
        case list():
            return [_stopped(item, uid) for item in value]
        case str():
            return value.replace(uid, "")
    return value
