"""Breaches of invariants: which object, in which step, by which events; and whether a rule's finding explains one.

Knows no invariant: each says itself what a breach is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from msgspec import Struct

from seatrial.evidence.causes import COMPARES
from seatrial.evidence.moment import Moment
from seatrial.model.finding import DAMAGES, Damage, Finding, Reviewed, agreed, hazard
from seatrial.model.release import Case
from seatrial.model.resource import Path, Pointer, Ref, dig
from seatrial.model.timeline import Event, Rehearsal


class Breach(Struct, frozen=True):
    """One object for which an invariant does not hold after one step of one rehearsal."""

    moment: Moment
    object: Ref
    damage: Damage
    cause: str
    """What it has in common with other objects that are reported with it."""
    events: tuple[Event, ...] = ()
    """What happened to the object, then what caused that, back to the request."""
    why: str = ""
    """A sentence about this object."""
    path: Path = ("metadata", "name")
    """The field to point at. An item of a list is named by its name or its index."""
    lasts: bool = False
    """Whether a finding about an earlier step explains it as well, since the object stays so or it happens again."""
    lacking: tuple[Ref, ...] = ()
    """What the object waits for: a finding about that explains it as well."""
    stops: bool = False
    """Whether something does not work at all. Neither a nuisance nor a doubt about the same object explains that."""

    @property
    def schedule(self) -> str:
        return self.moment.rehearsal.schedule

    @property
    def about(self) -> set[Ref]:
        """The object, those with which it was caused, and those that it lacks."""
        return {self.object, *(event.object for event in self.events), *self.lacking}


class Breaches(Struct, frozen=True):
    """What one finding reports: objects with a common cause, in the rehearsals that show them."""

    all: tuple[Breach, ...]
    """One for each object, of the first rehearsal that shows it; the worst damage first."""
    steps: tuple[int, ...]
    schedules: tuple[str, ...]

    @property
    def first(self) -> Breach:
        return self.all[0]

    @property
    def objects(self) -> tuple[Ref, ...]:
        return tuple(breach.object for breach in self.all)

    def places(self) -> Iterator[Pointer]:
        """Where the objects are written."""
        for breach in self.all:
            if written := breach.moment.case.written(breach.moment.index, breach.object):
                yield written.place(*_indexed(written.body, breach.path))


Finds = Callable[[Rehearsal, Case], Iterable[Breach]]


def unexplained(trial: Sequence[Reviewed], finds: Finds) -> Iterator[Breaches]:
    """The breaches of one trial that no finding of a rule explains, grouped by their cause."""
    by_object: dict[tuple[str, Ref], list[Breach]] = {}
    explained: dict[tuple[str, Ref], dict[str, list[Finding]]] = {}
    for reviewed in trial:
        for breach in finds(reviewed.rehearsal, reviewed.case):
            key = breach.cause, breach.object
            by_object.setdefault(key, []).append(breach)
            by = explained.setdefault(key, {}).setdefault(breach.schedule, [])
            by.extend(finding for finding in reviewed.findings if explains(finding, breach))
            by.extend(finding for finding in reviewed.elsewhere if explains_alike(finding, breach))
    left: dict[tuple[str, int, tuple[str, ...]], list[list[Breach]]] = {}
    for key, breaches in by_object.items():
        if not all(explained[key].values()):
            schedules = tuple(dict.fromkeys(breach.schedule for breach in breaches))
            left.setdefault((key[0], breaches[0].moment.index, schedules), []).append(breaches)
    for (_, _, schedules), alike in left.items():
        firsts = sorted((_worst(breaches) for breaches in alike), key=_severity)
        steps = sorted({breach.moment.index for breaches in alike for breach in breaches})
        yield Breaches(tuple(firsts), tuple(steps), schedules)


def explains(finding: Finding, breach: Breach) -> bool:
    """Whether a finding of the same rehearsal is about this breach: its events, or the object in that step."""
    if finding.rule in COMPARES or (breach.stops and finding.damage == "nuisance"):
        return False
    if not {event.index for event in breach.events}.isdisjoint(finding.evidence):
        return True
    if breach.stops and finding.certainty == "may":
        return False
    then = finding.step <= breach.moment.index if breach.lasts else finding.step == breach.moment.index
    return then and not breach.about.isdisjoint(finding.objects)


def explains_alike(finding: Finding, breach: Breach) -> bool:
    """Whether a finding of another case is about the same object and action."""
    same = finding.rule not in COMPARES and finding.action == breach.moment.ended.action
    if breach.stops and (finding.damage == "nuisance" or finding.certainty == "may"):
        return False
    return same and not breach.about.isdisjoint(finding.objects)


def certain(trial: Sequence[Reviewed]) -> set[object]:
    """The hazards that happen under every schedule, also those that a rule calls likely because of what it assumes."""
    found = (finding for one in trial for finding in one.findings)
    schedules = {one.rehearsal.schedule for one in trial}
    merged = agreed((*found, *trial[0].elsewhere), schedules)
    likely = (finding for finding in merged if finding.certainty == "likely" and schedules.issubset(finding.schedules))
    return {hazard(finding) for finding in (*(f for f in merged if f.certainty == "will"), *likely)}


def traced(rehearsal: Rehearsal, event: Event) -> Iterator[Event]:
    """An event, what caused it, what caused that, and so on."""
    found: Event | None = event
    while found is not None:
        yield found
        found = rehearsal.timeline[found.cause] if found.cause is not None else None


def _indexed(body: Any, path: Path) -> Iterator[str | int]:
    """A path with the index of each item that it names."""
    for part in path:
        named = isinstance(body, list) and isinstance(part, str)
        step = next((index for index, item in enumerate(body) if dig(item, "name") == part), 0) if named else part
        yield step
        body = dig(body, step)


def _severity(breach: Breach) -> int:
    return DAMAGES.index(breach.damage)


def _worst(breaches: list[Breach]) -> Breach:
    """What is reported of one object: of the first rehearsal that shows it, the step with the worst damage."""
    return min((breach for breach in breaches if breach.schedule == breaches[0].schedule), key=_severity)
