"""Steps that die on the way, and what becomes of the release after that. Pure data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from seatrial.model.engine import EngineId, Role
from seatrial.model.finding import Finding
from seatrial.model.resource import Ref

if TYPE_CHECKING:
    from seatrial.model.release import Case

Aftermath = Literal["safe", "locked", "fails", "hangs", "loses", "leaves"]
"""What repeating a step does that died. `safe`: what it does when nothing dies. `locked`: the engine refuses to start,
because it takes the dead process for a running one. `loses`, `leaves`: it ends, with objects missing, or with
objects or fields left over."""


class Interruption(Struct, frozen=True, omit_defaults=True):
    """One moment at which a step dies: after one of its writes, whose answer it does not get."""

    write: int
    """From 1."""
    verb: str
    object: Ref
    aftermath: Aftermath
    error: str = ""
    """What the engine reports when the step is repeated, or when a rollback follows."""
    act: str = ""
    """What reports it: `helm upgrade`, `helm rollback`."""
    lost: tuple[Ref, ...] = ()
    left: tuple[Ref, ...] = ()
    fields: tuple[tuple[Ref, str], ...] = ()
    """Fields of objects that are left over: `spec.replicas`."""
    blocked_by: str = ""
    """What the engine reports after the usual way out, if that does not help."""
    way_out: tuple[str, ...] = ()
    """The commands that lead to the same end as if nothing had died, if repeating the step does not. Rehearsed."""


class Interrupted(Struct, frozen=True):
    """One step of a trial with one engine, and every moment of it that was tried."""

    engine: EngineId
    label: str
    """The engine as users call it: `Argo CD`."""
    case: str
    step: int
    """Its index in the trial."""
    action: str
    act: str
    """`helm upgrade`, `the sync`."""
    role: Role
    release: str
    namespace: str
    writes: int
    """How many writes it has; 0 if it, or a step before it, does not end well by itself."""
    possible: int
    """After how many of them it can die. After the last one it has ended, unless it still has to remember that."""
    moments: tuple[Interruption, ...]
    """Those that were tried, in order."""
    answer: str = ""
    """What the API server answers once, if the step does not die: 500 (not done), 504 (done, the answer is lost), 429.

    Or `cut`: the first watch after the write is cut.
    """

    @property
    def untried(self) -> int:
        return self.possible - len(self.moments)

    def having(self, *aftermaths: Aftermath) -> list[Interruption]:
        return [moment for moment in self.moments if moment.aftermath in aftermaths]


class InterruptionRule(Struct, frozen=True):
    """One hazard of a step that dies. Its page is the docstring of the module that exports it."""

    code: str
    name: str
    check: Callable[[Sequence[Interrupted], Case], Iterator[Finding]]
    """Takes the steps of one case with one engine."""
