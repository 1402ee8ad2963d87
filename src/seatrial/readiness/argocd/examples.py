"""States of an object that every health check must survive, from its creation to its deletion. Data only."""

from __future__ import annotations

from msgspec import Struct

from seatrial.kinds.tables.empty_status import EMPTY_STATUS
from seatrial.model.resource import Body

FROM_THE_START: dict[tuple[str, str], Body] = {
    ("", "Namespace"): {"phase": "Active"},
    ("", "PersistentVolume"): {"phase": "Pending"},
    ("", "PersistentVolumeClaim"): {"phase": "Pending"},
    ("", "Pod"): {"phase": "Pending"},
    ("", "Service"): {"loadBalancer": {}},
    ("networking.k8s.io", "Ingress"): {"loadBalancer": {}},
    **EMPTY_STATUS,
}
"""Kinds that the API server gives a status. Any other has none until its controller writes one."""


class Example(Struct, frozen=True):
    """One state of an object."""

    name: str
    """After the word object: `that is ready`."""
    body: Body


def examples(group: str, kind: str, ready: tuple[str, str] = ("Ready", "")) -> tuple[Example, ...]:
    """The states; `ready` is the condition and the phase of an object that is ready."""
    condition, phase = ready
    good = {"conditions": [{"type": condition, "status": "True"}], "phase": phase or "Ready"}
    waits = {"conditions": [{"type": condition, "status": "False", "reason": "Pending"}], "phase": "Pending"}
    failed = {
        "conditions": [{"type": "Degraded", "status": "True", "reason": "Failed", "message": "it failed"}],
        "phase": "Failed",
        "state": "Failed",
        "health": {"status": "Degraded"},
    }
    first = FROM_THE_START.get((group, kind))
    return (
        Example("that was just created", _body(group, kind, first)),
        Example("with an empty status", _body(group, kind, first or {})),
        Example("without conditions", _body(group, kind, {**(first or {}), "conditions": []})),
        Example("that is progressing", _body(group, kind, waits)),
        Example("of an older generation", _body(group, kind, {**good, "observedGeneration": 1})),
        Example(
            "that is ready", _body(group, kind, {**good, "observedGeneration": 2, "health": {"status": "Healthy"}})
        ),
        Example("that is degraded", _body(group, kind, failed)),
        Example("that is being deleted", _body(group, kind, good, deletionTimestamp="2026-01-01T00:00:00Z")),
    )


def _body(group: str, kind: str, status: Body | None, **meta: str) -> Body:
    body: Body = {
        "apiVersion": f"{group}/v1" if group else "v1",
        "kind": kind,
        "metadata": {"name": "example", "namespace": "default", "generation": 2, **meta},
        "spec": {},
    }
    return body if status is None else {**body, "status": status}
