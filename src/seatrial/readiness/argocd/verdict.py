"""Argo CD's health of an object. Data only."""

from __future__ import annotations

from msgspec import Struct

HEALTHY, SUSPENDED, PROGRESSING = "Healthy", "Suspended", "Progressing"
MISSING, DEGRADED, UNKNOWN = "Missing", "Degraded", "Unknown"
WORST_LAST = (HEALTHY, SUSPENDED, PROGRESSING, MISSING, DEGRADED, UNKNOWN)
"""`healthOrder` of gitops-engine/pkg/health/health.go."""


class Health(Struct, frozen=True):
    status: str
    """One of the statuses above; empty if a script returned nothing, which is neither healthy nor a failure."""
    message: str = ""
    broken: bool = False
    """Whether the check itself failed; the message is its error."""


class HealthScript(Struct, frozen=True):
    """A health check in Lua from the user's settings."""

    text: str
    open_libs: bool = False
    """Whether it may use `string`, `math` and the like: `useOpenLibs`."""
