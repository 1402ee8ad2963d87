"""Two inputs rehearsed with the same trial: which findings and dependencies differ.

Plays nothing: each side is what one check found out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from seatrial.evidence.compare.engine_differences import ComparedRehearsal
from seatrial.evidence.compare.engine_outcomes import standings_of
from seatrial.evidence.pulumi.dependencies import dependences
from seatrial.graph.linking import graph_of
from seatrial.model.finding import Finding, is_worse
from seatrial.model.release import Case
from seatrial.model.result import Change, Comparison, Dependency, Judged


class Side(Struct, frozen=True):
    """One of the two inputs: its name, its rehearsals and its findings."""

    name: str
    seen: Sequence[ComparedRehearsal]
    findings: Sequence[Finding]


def comparison(old: Side, new: Side) -> Comparison:
    had, has = (sorted({edge for one in side.seen for edge in _edges(one.case)}) for side in (old, new))
    return Comparison(
        old=old.name,
        new=new.name,
        before=tuple(standings_of(old.seen)),
        now=tuple(standings_of(new.seen)),
        changes=tuple(_changes(old.findings, new.findings)),
        gained=tuple(edge for edge in has if edge not in had),
        lost=tuple(edge for edge in had if edge not in has),
    )


def _changes(before: Sequence[Finding], now: Sequence[Finding]) -> Iterator[Change]:
    """Per rule, the objects it reports on one side or on both; objects with the same change are merged."""
    was, is_now = _judged(before), _judged(now)
    alike: dict[tuple[str, str, Judged | None, Judged | None], list[str]] = {}
    for key in dict.fromkeys((*was, *is_now)):
        rule, code, name = key
        alike.setdefault((rule, code, was.get(key), is_now.get(key)), []).append(name)
    for (rule, code, old, new), names in alike.items():
        yield Change(rule, code, tuple(names), old, new)


def _judged(findings: Sequence[Finding]) -> dict[tuple[str, str, str], Judged]:
    """By rule, code and object; the worst finding of several."""
    judged: dict[tuple[str, str, str], Judged] = {}
    for finding in findings:
        for subject in subjects(finding):
            judged.setdefault(subject, Judged(finding.certainty, finding.damage))
    return judged


def subjects(finding: Finding) -> Iterator[tuple[str, str, str]]:
    """What a finding is compared by: rule, code and object, or its action if it is about none."""
    yield from ((finding.rule, finding.code, name) for name in map(str, finding.objects or (finding.action,)))


def marked(old: Sequence[Finding], new: Sequence[Finding]) -> Iterator[Finding]:
    """The new findings; one is known if the old input has it for all its objects, as bad."""
    was = _judged(old)
    for finding in new:
        before = [was.get(subject) for subject in subjects(finding)]
        as_bad = all(one is not None and not is_worse(finding, one.certainty, one.damage) for one in before)
        yield replace(finding, known=True) if as_bad else finding


def _edges(case: Case) -> Iterator[Dependency]:
    """Dependencies: for a Pulumi program as the engine sees them, otherwise from fields and kinds."""
    releases = [release for release in case.releases if release is not None]
    if any(release.program for release in releases):
        yield from (Dependency(one.resource, other) for one in dependences(case) for other in one.now)
        return
    yield from (Dependency(str(link.user), str(link.object)) for link in graph_of(releases).links if not link.guess)
