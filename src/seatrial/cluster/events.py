"""Event objects of controllers and kubelets, for `kubectl describe` and `kubectl get events`.

They are built on request and never stored. The timeline records the messages themselves.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from seatrial.kinds import NOT_FOLLOWED, PRINTED
from seatrial.kinds.tables.catalogue import ServedKind
from seatrial.model.resource import Body, Ref


class EmittedEvent(Struct, frozen=True):
    """One message about one object."""

    about: Ref
    uid: str
    api_version: str
    actor: str
    reason: str
    message: str
    warning: bool
    time: str


def as_events(emitted: Iterable[EmittedEvent], kind: ServedKind, namespace: str) -> list[Body]:
    """The Events about objects of one namespace, or of all, in the requested version."""
    shape = _core if not kind.group else _events_group
    found = [
        shape(event, f"{event.about.name}.{index:016x}")
        for index, event in enumerate(emitted, start=1)
        if namespace in ("", _namespace(event)) and event.reason not in (PRINTED, NOT_FOLLOWED)
    ]
    return sorted(found, key=lambda body: (body["metadata"]["namespace"], body["metadata"]["name"]))


def _namespace(event: EmittedEvent) -> str:
    """Events about cluster-scoped objects are in `default`."""
    return event.about.namespace or "default"


def _core(event: EmittedEvent, name: str) -> Body:
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": _metadata(event, name),
        "involvedObject": _about(event),
        "reason": event.reason,
        "message": event.message,
        "type": _type(event),
        "count": 1,
        "firstTimestamp": event.time,
        "lastTimestamp": event.time,
        "source": {"component": event.actor},
    }


def _events_group(event: EmittedEvent, name: str) -> Body:
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": _metadata(event, name),
        "regarding": _about(event),
        "reason": event.reason,
        "note": event.message,
        "type": _type(event),
        "eventTime": None,
        "deprecatedCount": 1,
        "deprecatedFirstTimestamp": event.time,
        "deprecatedLastTimestamp": event.time,
        "deprecatedSource": {"component": event.actor},
    }


def _metadata(event: EmittedEvent, name: str) -> Body:
    return {"name": name, "namespace": _namespace(event), "uid": name, "creationTimestamp": event.time}


def _about(event: EmittedEvent) -> Body:
    about: Body = {"apiVersion": event.api_version, "kind": event.about.kind, "name": event.about.name}
    if event.about.namespace:
        about["namespace"] = event.about.namespace
    return {**about, "uid": event.uid}


def _type(event: EmittedEvent) -> str:
    return "Warning" if event.warning else "Normal"
