"""Schedules between the bounds: orders that are open by what is read and written come first, then seeded ones.

A slow and a fast cluster do not show a race that needs one thing fast and another one slow. An order is open if what
the controllers of one object write is read by those of another one, or by a request. Every finding that no bound shows
is shrunk to the fewest objects that must differ, and carries its schedule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from random import Random

from msgspec import Struct
from msgspec.structs import replace

from seatrial.cluster.touched import CONTROLLERS, Mover, Touches
from seatrial.evidence.compare.engine_differences import ComparedRehearsal
from seatrial.model.finding import Finding, hazard
from seatrial.model.mix import Base, Mix, mixed
from seatrial.model.result import Explored
from seatrial.plan.plan import Plan
from seatrial.play.heard import Heard
from seatrial.play.rehearse import rehearse

BASES: tuple[Base, ...] = ("eager", "lazy")
SEED = 0
RANDOM_MAX = 10_000
"""Draws of seeded schedules: most of them repeat for a release of few objects."""

Judge = Callable[[list[ComparedRehearsal]], list[Finding]]
"""What rehearsals show, without what is known."""


class Exploration(Struct, frozen=True):
    """What was tried for one plan, and what it shows."""

    explored: Explored
    seen: tuple[ComparedRehearsal, ...]
    """The rehearsals that show something new, each under the schedule of its findings."""
    findings: tuple[Finding, ...]


def explore(plan: Plan, heard: Heard, tries: int, judge: Judge, progress: Callable[[str], None]) -> Exploration:
    """Rehearse `plan` under up to `tries` schedules between the bounds."""
    pairs, objects = _open(plan, heard)
    tried: list[Mix] = []
    found: dict[object, tuple[ComparedRehearsal, Finding]] = {}

    def shown(mix: Mix) -> tuple[ComparedRehearsal, list[Finding]]:
        rehearsal = replace(rehearse(plan, "mixed", mix=mix, heard=heard), mix=str(mix))
        seen = ComparedRehearsal(rehearsal, plan.case)
        return seen, judge([seen])

    for mix in islice(_mixes(pairs, objects), tries):
        progress(f"explore {len(tried) + 1} of {tries}: {mix}")
        tried.append(mix)
        seen, new = shown(mix)
        for finding in new:
            if hazard(finding) not in found:
                found[hazard(finding)] = _shrunk(mix, seen, finding, shown)
    known = {mix for mix in tried if len(mix.swaps) == 1}
    done = [pair for pair in pairs if all(mix in known for mix in _both_orders(pair))]
    explored = Explored(plan.engine, plan.case.name, len(pairs), len(done), len(objects), len(tried))
    return Exploration(explored, tuple(seen for seen, _ in found.values()), tuple(one for _, one in found.values()))


def _open(plan: Plan, heard: Heard) -> tuple[list[tuple[Mover, Mover]], list[str]]:
    """The pairs whose order is open, and all objects that have controllers, by a rehearsal on a fast cluster."""
    pairs: dict[tuple[Mover, Mover], None] = {}
    objects: dict[str, None] = {}

    def observe(touches: Touches) -> None:
        pairs.update(dict.fromkeys(touches.open_pairs()))
        objects.update(dict.fromkeys(map(str, touches.objects())))

    rehearse(plan, "eager", heard=heard, observe=observe)
    return list(pairs), list(objects)


def _both_orders(pair: tuple[Mover, Mover]) -> Iterator[Mix]:
    """One of them slow and all else fast, and one of them fast and all else slow."""
    for of, ref in pair:
        if of == CONTROLLERS:
            yield from (mixed(base, (str(ref),)) for base in BASES)


def _mixes(pairs: list[tuple[Mover, Mover]], objects: list[str]) -> Iterator[Mix]:
    """Each schedule once: open orders, then those of two objects together, then the other objects, then seeded ones."""
    seen: set[Mix] = set()
    for mix in _in_order(pairs, objects):
        if mix not in seen and len(mix.swaps) < len(objects):  # All of them is the other bound.
            seen.add(mix)
            yield mix


def _in_order(pairs: list[tuple[Mover, Mover]], objects: list[str]) -> Iterator[Mix]:
    for pair in pairs:
        yield from _both_orders(pair)
    for one, other in pairs:
        both = tuple(sorted({str(ref) for of, ref in (one, other) if of == CONTROLLERS}))
        yield from (mixed(base, both) for base in BASES)
    for name in objects:
        yield from (mixed(base, (name,)) for base in BASES)
    dice = Random(SEED)
    for _ in range(RANDOM_MAX if len(objects) > 1 else 0):
        size = dice.randint(1, len(objects) - 1)
        yield mixed(dice.choice(BASES), tuple(sorted(dice.sample(objects, size))))


def _shrunk(
    mix: Mix, seen: ComparedRehearsal, finding: Finding, shown: Callable[[Mix], tuple[ComparedRehearsal, list[Finding]]]
) -> tuple[ComparedRehearsal, Finding]:
    """The finding with as few objects as possible that are not as fast, or slow, as the others."""
    for name in mix.swaps if len(mix.swaps) > 1 else ():
        smaller = mix.without(name)
        if not smaller.swaps:
            break
        tried, new = shown(smaller)
        if same := next((one for one in new if hazard(one) == hazard(finding)), None):
            mix, seen, finding = smaller, tried, same
    return seen, _with_schedule(finding, mix)


def _with_schedule(finding: Finding, mix: Mix) -> Finding:
    one, others = ("slow", "fast") if mix.base == "eager" else ("fast", "slow")
    when = f"It shows if {' and '.join(mix.swaps)} is {one} and everything else is {others}."
    replay = f"To replay: seatrial run ... --schedule FILE, with this in FILE: {mix}"
    return replace(finding, certainty="may", schedule=str(mix), details=(*finding.details, when, replay))
