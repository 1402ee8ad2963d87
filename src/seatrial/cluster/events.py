"""What controllers and kubelets said, as the Event objects that `kubectl describe` and `kubectl get events` read.

They are made when they are asked for and never stored: a rehearsal hears the words themselves.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from seatrial.kinds import PRINTED
from seatrial.kinds.tables.catalogue import ServedKind
from seatrial.model.resource import Body, Ref


class Saying(Struct, frozen=True):
    """One sentence about one object."""

    about: Ref
    uid: str
    api_version: str
    actor: str
    reason: str
    message: str
    warning: bool
    time: str


def as_events(sayings: Iterable[Saying], kind: ServedKind, namespace: str) -> list[Body]:
    """The sayings about objects of one namespace, or of all, in the version that was asked for."""
    shape = _core if not kind.group else _events_group
    found = [
        shape(saying, f"{saying.about.name}.{index:016x}")
        for index, saying in enumerate(sayings, start=1)
        if namespace in ("", _home(saying)) and saying.reason != PRINTED
    ]
    return sorted(found, key=lambda body: (body["metadata"]["namespace"], body["metadata"]["name"]))


def _home(saying: Saying) -> str:
    """Events about what has no namespace are kept in `default`."""
    return saying.about.namespace or "default"


def _core(saying: Saying, name: str) -> Body:
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": _metadata(saying, name),
        "involvedObject": _about(saying),
        "reason": saying.reason,
        "message": saying.message,
        "type": _type(saying),
        "count": 1,
        "firstTimestamp": saying.time,
        "lastTimestamp": saying.time,
        "source": {"component": saying.actor},
    }


def _events_group(saying: Saying, name: str) -> Body:
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": _metadata(saying, name),
        "regarding": _about(saying),
        "reason": saying.reason,
        "note": saying.message,
        "type": _type(saying),
        "eventTime": None,
        "deprecatedCount": 1,
        "deprecatedFirstTimestamp": saying.time,
        "deprecatedLastTimestamp": saying.time,
        "deprecatedSource": {"component": saying.actor},
    }


def _metadata(saying: Saying, name: str) -> Body:
    return {"name": name, "namespace": _home(saying), "uid": name, "creationTimestamp": saying.time}


def _about(saying: Saying) -> Body:
    about: Body = {"apiVersion": saying.api_version, "kind": saying.about.kind, "name": saying.about.name}
    if saying.about.namespace:
        about["namespace"] = saying.about.namespace
    return {**about, "uid": saying.uid}


def _type(saying: Saying) -> str:
    return "Warning" if saying.warning else "Normal"
