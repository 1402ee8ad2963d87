"""A plan: one case of a trial, ready to be rehearsed. Data only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from seatrial.engines.engine import PlannedStep
from seatrial.model.engine import EngineId
from seatrial.model.release import Case, Release
from seatrial.model.repair import NO_REPAIRS, Repairs
from seatrial.model.resource import Body, Ref
from seatrial.model.trial import Expectations, Expected


class Plan(Struct, frozen=True):
    """One case of a trial, ready to be rehearsed as often as wanted."""

    engine: EngineId
    steps: tuple[PlannedStep[Any], ...]
    case: Case
    kube_version: str = "1.34"
    assumed: tuple[Body, ...] = ()
    """Objects that are in the cluster before the first step, or as soon as their namespace exists."""
    found: tuple[Body, ...] = ()
    """Objects of a real cluster, which are put there exactly as they were found."""
    created_namespaces: frozenset[str] = frozenset()
    """Namespaces that releases contain or that an engine creates."""
    heralds: Mapping[Ref, Ref] = {}
    """Objects after whose creation another one has brought what it is known to bring (`Case.brought`)."""
    deployed: tuple[Body, ...] = ()
    """What Helm has put there before, in its order; not on a cluster that is rebuilt."""
    server_side: bool = True
    """Whether Helm had the server merge what it has put there."""
    revisions: tuple[tuple[int, Release], ...] = ()
    """The recorded revisions of the deployed release."""
    expects: Expectations = Expectations()
    """What the trial file says must be so."""
    repairs: Repairs = NO_REPAIRS
    """Obstacles that are assumed to be repaired."""

    toggle: str = ""
    """The flag that is toggled, as the case with it is called; a new install has the same."""
    not_toggled: tuple[str, ...] = ()
    """Further flags that the same change is about, for which there are too few steps."""
    toggled_before: frozenset[Ref] = frozenset()
    """The objects of the old revision with the toggle."""

    @property
    def expected(self) -> Expected:
        return Expected(tuple(planned.step.expect for planned in self.steps), self.expects)
