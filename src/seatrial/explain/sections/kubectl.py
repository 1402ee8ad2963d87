"""kubectl: order and waits."""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.explain.section import Section
from seatrial.kinds.scripts.kubectl_gates import ROLLED_OUT
from seatrial.model.engine import EngineId


def sections(chosen: EngineId) -> Iterator[Section]:
    yield Section("Order: as in the files; folders by file name")
    yield Section("kubectl apply waits for nothing. kubectl rollout status waits for", entries=tuple(ROLLED_OUT))
