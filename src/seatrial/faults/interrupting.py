"""Steps of trials that die after their writes, or of which one request fails, and what the rules find in that."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby

from seatrial.model.finding import Finding
from seatrial.model.interruption import Interrupted
from seatrial.model.options import CheckOptions
from seatrial.model.release import Case
from seatrial.plan.plan import Plan
from seatrial.play.heard import Heard
from seatrial.play.interrupted import MOMENTS_MAX, interrupted
from seatrial.rules import all_interruption_rules

ANSWERS = {"500": 4, "504": 4, "429": 16, "cut": 16}
"""Faults of the API server, each with its share of the tries: one of so many in each step.

500: it is not done (a webhook that flaps). 504: it is done and the answer is lost (a timeout). 429, and a watch that is
cut after the write: clients written in Go repeat the request and open the watch again, so that few tries show it.
"""


def first_cases(plans: Sequence[tuple[Plan, Heard]]) -> list[tuple[Plan, Heard]]:
    """Of each engine the first case."""
    first = {plan.engine: (plan, heard) for plan, heard in reversed(plans)}
    return [*reversed(first.values())]


def interrupt(
    plans: Iterable[tuple[Plan, Heard]], options: CheckOptions, progress: Callable[[str], None]
) -> Iterator[Interrupted]:
    """Steps die, if that is asked for; and about as many requests fail as schedules are explored."""
    for plan, heard in plans:
        if options.interrupted:
            most = sys.maxsize if options.every_write else MOMENTS_MAX
            yield from interrupted(plan, heard, progress, moments_max=most)
        for answer, share in ANSWERS.items() if options.explore else ():
            yield from interrupted(plan, heard, progress, answer, max(1, options.explore // share))


def aftermaths(
    found: Iterable[Interrupted], plans: Sequence[tuple[Plan, Heard]], identified: Callable[[Finding, Case], Finding]
) -> Iterator[Finding]:
    cases = {(plan.engine, plan.case.name): plan.case for plan, _ in plans}
    for key, steps in groupby(found, lambda one: (one.engine, one.case, one.answer)):
        case, of = cases[key[:2]], list(steps)
        yield from (identified(one, case) for rule in all_interruption_rules() for one in rule.check(of, case))
