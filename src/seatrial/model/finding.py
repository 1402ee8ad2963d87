"""Findings, and how several rehearsals agree on one. Decides nothing about their text."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Literal

from msgspec import Struct
from msgspec.structs import replace

from seatrial.model.engine import EngineId
from seatrial.model.resource import Place, Pointer, Ref
from seatrial.model.timeline import ORDINARY, SCHEDULES

if TYPE_CHECKING:
    from seatrial.model.release import Case
    from seatrial.model.timeline import Rehearsal

Certainty = Literal["will", "likely", "may"]
Damage = Literal["data-loss", "outage", "failed-deploy", "nuisance"]

CERTAINTIES: tuple[Certainty, ...] = ("will", "likely", "may")
"""Most certain first: on every cluster; on an ordinary one; only on a very slow or a very fast one."""
DAMAGES: tuple[Damage, ...] = ("data-loss", "outage", "failed-deploy", "nuisance")
"""Worst first."""


class FileEdit(Struct, frozen=True, order=True):
    """Put `text` where a range of a file is. Lines and columns count characters from 1; the end is not included."""

    file: str
    line: int
    column: int
    end_line: int
    end_column: int
    text: str


class Fix(Struct, frozen=True):
    """A way out of a finding: edits of the user's own files, or steps where no edit is certain."""

    title: str
    safe: bool
    proven: bool
    """Whether the whole trial was rehearsed with it: the finding is gone, and none as grave comes."""
    why_unsafe: str = ""
    """What else it changes, if it is not safe."""
    edits: tuple[FileEdit, ...] = ()
    steps: tuple[str, ...] = ()
    """What to do by hand, if there are no edits."""
    diff: str = ""
    """The edits as a unified diff."""
    rejected: tuple[str, ...] = ()
    """What was tried and is not enough, with the reason."""
    proposed: bool = False
    """Whether a fixer knows the change, and leaves it to the user because the text is not certain."""


class Finding(Struct, frozen=True):
    """One hazard: which objects, at which step, why, and in which file."""

    rule: str
    code: str
    certainty: Certainty
    damage: Damage
    engines: tuple[EngineId, ...]
    action: str
    objects: tuple[Ref, ...]
    message: str
    """One sentence: which object, when, what happens."""
    details: tuple[str, ...] = ()
    """Further sentences: what the user sees, what the next step does, why the obvious explanation is wrong."""
    pointers: tuple[Pointer, ...] = ()
    """Where to change it, as the rule names it."""
    places: tuple[Place, ...] = ()
    """The same as lines of files; only `check` resolves pointers."""
    evidence: tuple[int, ...] = ()
    """Indices of events in the timeline of the first rehearsal of `engines[0]` that shows it."""
    confirm: str = ""
    """One command that shows it on a cluster."""
    way_out: tuple[str, ...] = ()
    """What to do about it, if that depends on what happened: a sentence, then steps. Otherwise `fix.ways` has it."""
    recover: str = ""
    """What repairs a cluster in which it has happened."""
    fix: Fix | None = None
    case: str = ""
    """The values case in which it was seen, if the input has several."""
    schedules: tuple[str, ...] = ()
    removal: bool = False
    """Whether it is what removing a release does by design: it is reported apart, and does not fail a check."""
    removes: bool = False
    """Whether it is about a step that removes a release, by design or not."""
    timeless: bool = False
    """Whether it does not depend on the speed of the cluster: an invalid object, a version that is not served."""
    hidden: tuple[str, ...] = ()
    """The schedules that cannot show it: the trial stopped before, or was not rehearsed. Only of what is timeless."""
    step: int = 0
    """The step of the trial that it is about, from 0."""
    after: tuple[str, ...] = ()
    """Obstacles that stop the trial before; it shows once they are repaired."""
    cause: str = ""
    """What sets it apart from another finding of the same rule about the same objects."""
    fingerprint: str = ""
    """The same for the same hazard in another revision of the input; only `check` computes it."""
    schedule: str = ""
    """The schedule that shows it, if it is none of the usual ones: as in a file for `seatrial run --schedule`."""
    known: bool = False
    """Whether a baseline or the old version has it, as bad: it does not fail a check."""


class Rule(Struct, frozen=True):
    """One hazard class. Its page is the docstring of the module that exports it."""

    code: str
    name: str
    check: Callable[[Rehearsal, Case], Iterator[Finding]]
    before: tuple[str, ...] = ()
    """Rules whose findings about the same cause this one replaces."""
    timeless: bool = False
    """Whether what it reports does not depend on the speed of the cluster, and so is never a race."""


class Reviewed(Struct, frozen=True):
    """One rehearsal, its case, and what the rules found in it."""

    rehearsal: Rehearsal
    case: Case
    findings: tuple[Finding, ...]
    elsewhere: tuple[Finding, ...] = ()
    """What they found in other cases with the same engine."""


class Invariant(Struct, frozen=True):
    """What must hold for every step. A breach is a finding, unless the finding of a rule explains it."""

    code: str
    name: str
    check: Callable[[Sequence[Reviewed]], Iterator[Finding]]
    """Takes the rehearsals of one trial with one engine, one for each schedule."""


def agreed(findings: Iterable[Finding], schedules: Collection[str] = SCHEDULES) -> list[Finding]:
    """One finding per hazard: `will` if all `schedules` show it, `likely` if the ordinary one does, otherwise `may`."""
    groups: dict[tuple[object, ...], list[Finding]] = {}
    for finding in findings:
        groups.setdefault((*hazard(finding), finding.case), []).append(finding)
    return sorted((_merged(group, schedules) for group in groups.values()), key=worst_first)


def hazard(finding: Finding) -> tuple[str, tuple[Ref, ...], str]:
    """What findings of one hazard have in common, whichever rehearsal shows it."""
    return finding.rule, finding.objects, finding.cause


def _merged(group: list[Finding], schedules: Collection[str]) -> Finding:
    """The finding of the engine under which it is gravest, with the names of the others."""
    engines = dict.fromkeys(name for finding in group for name in finding.engines)
    by_engine = [_under(group, engine, schedules) for engine in engines]
    gravest = min(by_engine, key=gravity)
    others = (name for finding in by_engine for name in finding.engines if name not in gravest.engines)
    seen = tuple(dict.fromkeys(s for finding in group for s in finding.schedules))
    hidden = tuple(dict.fromkeys(s for finding in group for s in finding.hidden if s not in seen))
    return replace(gravest, engines=(*gravest.engines, *others), schedules=seen, hidden=hidden)


def _under(group: list[Finding], engine: EngineId, schedules: Collection[str]) -> Finding:
    own = next(finding for finding in group if engine in finding.engines)
    return replace(own, certainty=_certainty(group, engine, schedules))


def gravity(finding: Finding) -> tuple[bool, int, int]:
    """What is gravest, first: a failure that is only likely is worse than a certain nuisance."""
    return finding.damage == "nuisance", CERTAINTIES.index(finding.certainty), DAMAGES.index(finding.damage)


def is_worse(finding: Finding, certainty: Certainty, damage: Damage) -> bool:
    """Whether a finding is more certain or does more damage than it did before."""
    more_certain = CERTAINTIES.index(finding.certainty) < CERTAINTIES.index(certainty)
    return more_certain or DAMAGES.index(finding.damage) < DAMAGES.index(damage)


def _certainty(group: list[Finding], engine: EngineId, schedules: Collection[str]) -> Certainty:
    own = [finding for finding in group if engine in finding.engines]
    sure = [finding for finding in own if finding.certainty == "will"]
    seen = {schedule for finding in sure for schedule in (*finding.schedules, *finding.hidden)}
    if seen.issuperset(schedules):
        return "will"
    by_itself = any(finding.certainty == "likely" for finding in own)
    return "likely" if by_itself or ORDINARY in seen else "may"


def worst_first(finding: Finding) -> tuple[bool, bool, int, bool, int, int, int, str, tuple[Ref, ...], str]:
    """The order of a report. What stops a deployment comes before what a removal does, unless it only may.

    What happens as things are comes before what happens only after repairs, and what happens to many objects before
    what happens to few.
    """
    certainty, damage = CERTAINTIES.index(finding.certainty), DAMAGES.index(finding.damage)
    only_may, repairs = finding.certainty == "may", len(finding.after)
    of_one = -len(finding.objects), finding.code, finding.objects, finding.case
    return only_may, finding.removes, certainty, repairs > 0, damage, repairs, *of_one
