"""Kinds without a controller."""

from __future__ import annotations

from seatrial.kinds import Kind

KINDS = (
    Kind("Event"),
    Kind("Event", "events.k8s.io"),
    Kind("Lease", "coordination.k8s.io"),
    Kind("Node"),
    Kind("PodTemplate"),
    Kind("CSIDriver", "storage.k8s.io"),
)
