"""How time passes on nodes: only while the client waits, and all at once when the cluster settles.

What needs a node takes longer than the gap between two requests of a client. So that this holds on a busy machine too,
the audit log of the API server tells when the client sent its last request.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

CLIENT = "client"
"""The user as whom Helm and kubectl come. Controllers, the kubelet and pods are others."""
POLICY = f"""apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - {{level: None, verbs: [watch]}}
  - {{level: Metadata, users: [{CLIENT}]}}
  - {{level: None}}
"""
GAP_SECONDS = 0.5
"""A client that has sent nothing for so long waits."""
FIRST_SECONDS = 2.0
"""How long a client may take to send its first request."""
NEVER = float("inf")


class NodeTime:
    """The clock of all nodes."""

    def __init__(self, audit_log: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._log = audit_log
        self._clock = clock
        self._size = 0
        self._heard = NEVER
        """When the client sent its last request, as far as known; infinity while no step runs."""
        self._ticked = self._clock()
        self._passed_seconds = 0.0
        self._seen: dict[str, float] = {}
        self._is_settling = True

    def begin_step(self) -> None:
        self._is_settling = False
        self._heard = self._clock() + FIRST_SECONDS

    def end_step(self) -> None:
        self._heard = NEVER

    def settle(self) -> None:
        """Whatever takes time is done with the next tick, until a step begins."""
        self._is_settling = True

    def tick(self) -> None:
        now = self._clock()
        size = self._log.stat().st_size if self._log.exists() else 0
        if size != self._size:
            self._size = size
            self._heard = now if self._heard != NEVER else NEVER
        if now - self._heard > GAP_SECONDS:
            self._passed_seconds += now - max(self._ticked, self._heard)
        self._ticked = now

    def is_over(self, what: str, seconds: float) -> bool:
        """Whether something that began when it was first asked about and takes so long is done."""
        began = self._seen.setdefault(what, self._passed_seconds)
        return self._is_settling or self._passed_seconds - began >= seconds
