"""Flux: stages, order and waits."""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.engines.flux.order import DEFINITIONS, FIRST, LAST
from seatrial.engines.flux.waiting import TIMEOUT_SECONDS
from seatrial.explain.section import Section
from seatrial.model.engine import EngineId
from seatrial.readiness import kstatus
from seatrial.text.durations import written


def sections(chosen: EngineId) -> Iterator[Section]:
    yield Section(
        "Stages of a Kustomization; Flux waits after each but the last",
        rows=(
            ("stage", "kinds"),
            ("1", ", ".join(DEFINITIONS)),
            ("2", "kinds whose name ends with Class"),
            ("3", "all other kinds"),
        ),
    )
    yield Section("Order: these first, then kinds that are not listed", entries=FIRST)
    yield Section("Order: these last", entries=LAST)
    wait = "With wait: true, Flux waits for all objects; these kinds have checks, others count by their condition Ready"
    yield Section(wait, entries=kstatus.CHECKED)
    yield Section("Timeout of a wait, by default", entries=(written(TIMEOUT_SECONDS),))
