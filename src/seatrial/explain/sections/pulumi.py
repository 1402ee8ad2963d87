"""Pulumi: order, waits and annotations."""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.explain.section import Section
from seatrial.model.engine import EngineId
from seatrial.readiness import pulumi
from seatrial.text.durations import written


def sections(chosen: EngineId) -> Iterator[Section]:
    limits = [(kind, written(pulumi.INNER_SECONDS.get(kind, pulumi.TIMEOUT_SECONDS))) for kind in pulumi.CHECKED]
    yield Section("Order: after everything that a resource depends on; all others at the same time")
    yield Section("Pulumi waits for these kinds, and for no other", rows=(("kind", "timeout"), *limits))
    yield Section(
        "Annotations",
        rows=(
            ("annotation", "effect"),
            (pulumi.SKIP_AWAIT, "does not wait for the object"),
            (pulumi.WAIT_FOR, "waits for a condition or a field, for any kind"),
            (pulumi.TIMEOUT, "timeout of the object"),
        ),
    )
