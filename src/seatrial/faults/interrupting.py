"""Steps of trials, killed after each of their writes, and what the rules find in that."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby

from seatrial.model.finding import Finding
from seatrial.model.interruption import Interrupted
from seatrial.model.release import Case
from seatrial.plan.plan import Plan
from seatrial.play.heard import Heard
from seatrial.play.interrupted import interrupted
from seatrial.rules import all_interruption_rules


def interrupt(plans: Iterable[tuple[Plan, Heard]], progress: Callable[[str], None]) -> Iterator[Interrupted]:
    for plan, heard in plans:
        yield from interrupted(plan, heard, progress)


def aftermaths(
    found: Iterable[Interrupted], plans: Sequence[tuple[Plan, Heard]], identified: Callable[[Finding, Case], Finding]
) -> Iterator[Finding]:
    cases = {(plan.engine, plan.case.name): plan.case for plan, _ in plans}
    for key, steps in groupby(found, lambda one: (one.engine, one.case)):
        case, of = cases[key], list(steps)
        yield from (identified(one, case) for rule in all_interruption_rules() for one in rule.check(of, case))
