"""Columns of `kubectl get` for nodes, namespaces and events."""

from __future__ import annotations

from typing import Any

from seatrial.cluster.tables.age import since
from seatrial.cluster.tables.column import AGE, NAME, NONE, Cell, Column, Columns, at, joined
from seatrial.model.resource import Body, dig, labels_of, listed


def _node_status(body: Body, now: str) -> str:
    ready = [c for c in listed(body, "status", "conditions") if c.get("type") == "Ready"]
    found = [("Ready" if c.get("status") == "True" else "NotReady") for c in ready] or ["Unknown"]
    return ",".join([*found, *(["SchedulingDisabled"] if dig(body, "spec", "unschedulable") else [])])


def _roles(body: Body, now: str) -> str:
    prefix = "node-role.kubernetes.io/"
    return joined(sorted(key.removeprefix(prefix) for key in labels_of(body) if key.startswith(prefix)))


def _address(kind: str) -> Cell:
    def cell(body: Body, now: str) -> str:
        entries = listed(body, "status", "addresses")
        return next((entry["address"] for entry in entries if entry.get("type") == kind), NONE)

    return cell


# Events of the core group and of events.k8s.io name most of their fields differently.
_FIRST = ("firstTimestamp",), ("deprecatedFirstTimestamp",), ("eventTime",)
_LAST = ("lastTimestamp",), ("deprecatedLastTimestamp",), *_FIRST


def _either(*paths: tuple[str, ...], default: Any = "") -> Cell:
    """The first of these that is set."""
    return lambda body, now: next((found for path in paths if (found := dig(body, *path))), default)


def _seen(*paths: tuple[str, ...]) -> Cell:
    moment = _either(*paths)
    return lambda body, now: since(moment(body, now), now)


def _about(body: Body, now: str) -> str:
    about = body.get("involvedObject") or body.get("regarding") or {}
    kind = str(about.get("kind") or "").lower()
    return f"{kind}/{about['name']}" if about.get("name") else kind


_EVENT = (
    Column("Last Seen", _seen(*_LAST)),
    Column("Type", at("type")),
    Column("Reason", at("reason")),
    Column("Object", _about),
    Column("Subobject", _either(("involvedObject", "fieldPath"), ("regarding", "fieldPath")), wide=True),
    Column("Source", _either(("source", "component"), ("deprecatedSource", "component")), wide=True),
    Column("Message", lambda body, now: str(body.get("message") or body.get("note") or "").strip()),
    Column("First Seen", _seen(*_FIRST), wide=True),
    Column("Count", _either(("count",), ("deprecatedCount",), default=1), wide=True),
    Column("Name", at("metadata", "name"), format="name", wide=True),
)

COLUMNS: Columns = {
    ("", "Event"): _EVENT,
    ("", "Namespace"): (NAME, Column("Status", at("status", "phase")), AGE),
    ("", "Node"): (
        NAME,
        Column("Status", _node_status),
        Column("Roles", _roles),
        AGE,
        Column("Version", at("status", "nodeInfo", "kubeletVersion")),
        Column("Internal-IP", _address("InternalIP"), wide=True),
        Column("External-IP", _address("ExternalIP"), wide=True),
        Column("OS-Image", at("status", "nodeInfo", "osImage", default="<unknown>"), wide=True),
        Column("Kernel-Version", at("status", "nodeInfo", "kernelVersion", default="<unknown>"), wide=True),
        Column(
            "Container-Runtime", at("status", "nodeInfo", "containerRuntimeVersion", default="<unknown>"), wide=True
        ),
    ),
    ("events.k8s.io", "Event"): _EVENT,
}
