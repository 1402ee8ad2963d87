"""How far controllers run after a write and while a client waits, by the schedule of the cluster."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from seatrial.cluster.controllers import Controllers
from seatrial.model.mix import Mix
from seatrial.model.resource import Ref
from seatrial.model.timeline import Schedule


class Pace:
    """One schedule. A seeded one remembers its dice, a mixed one which objects are fast."""

    def __init__(self, schedule: Schedule, controllers: Controllers, seed: int, mix: Mix | None) -> None:
        self._controllers = controllers
        self._dice = Random(seed)
        self._mix = mix or Mix("eager")
        self.base: Schedule = self._mix.base if schedule == "mixed" else schedule
        """The schedule that most of the cluster follows."""
        self.after_write: Callable[[], None] = {
            "ordinary": controllers.run_quick,
            "lazy": lambda: None,
            "eager": controllers.run_at_once,
            "seeded": lambda: controllers.run_some(self._dice),
            "mixed": self._run_fast,
        }[schedule]
        self._in_wait = self._run_fast if schedule == "mixed" else lambda: None

    def run_for(self, awaited: tuple[Ref, ...]) -> None:
        """A client waits for these: their controllers run, and on a mixed cluster those that are fast."""
        self._controllers.run_for(awaited)
        self._in_wait()

    def _run_fast(self) -> None:
        self._controllers.run_if(lambda root: self._mix.is_fast(str(root)))
