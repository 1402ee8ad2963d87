"""The stacks of one cluster: what Pulumi remembers of each from one step to the next."""

from __future__ import annotations

from seatrial.engines.engine import Before
from seatrial.engines.pulumi.checkpoint import Checkpoint


class Stacks:
    """The checkpoint of each release; empty before it is first brought up."""

    def __init__(self, before: Before) -> None:
        self._stacks: dict[str, Checkpoint] = {}

    def of(self, release: str) -> Checkpoint:
        return self._stacks.setdefault(release, Checkpoint())
