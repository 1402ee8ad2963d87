"""What a finding is about, as data: the rejected request, the wait or the deletion behind it.

Every rejection, hang and loss has one cause, so one rule reports it. Two findings of one rehearsal with a common cause
report the same failure twice; `Rule.before` says which of them is the better explanation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations

from msgspec import Struct

from seatrial.evidence.faults import faults
from seatrial.model.finding import Finding, Rule
from seatrial.model.resource import Ref
from seatrial.model.timeline import Rehearsal

REJECTED = "refused"
LOST = ("deleted", "deleting")
COMPARES = ("helm-version-differs",)
"""Rules about another engine version: their evidence is not of this rehearsal."""


class Cause(Struct, frozen=True):
    """One rejection or loss by its event, or one wait or ownership conflict by its object."""

    step: int
    object: Ref
    event: int | None = None


def causes_of(finding: Finding, rehearsal: Rehearsal) -> frozenset[Cause]:
    """The rejections, deletions, waits and ownership conflicts that a finding reports."""
    events = (rehearsal.timeline[index] for index in finding.evidence)
    own = (e for e in events if e.step == finding.step and (e.effect == REJECTED or e.effect in LOST))
    causes = {Cause(e.step, e.object, e.index) for e in own}
    result = rehearsal.steps[finding.step]
    if finding.damage == "failed-deploy" and result.outcome != "ok":
        awaited = [ref for ref in finding.objects if ref in result.waits_for]
        lacking = [ref for ref in finding.objects if ref in result.lacking]
        not_owned = [fault.object for fault in faults(result.failure, "not-owned") if fault.object in finding.objects]
        causes |= {Cause(finding.step, ref) for ref in (*(lacking or awaited), *filter(None, not_owned))}
    return frozenset(causes)


def overlaps(findings: Iterable[Finding], rehearsal: Rehearsal) -> Iterator[tuple[Finding, Finding]]:
    """Pairs of findings of different rules with a common cause."""
    about = [(f, causes_of(f, rehearsal)) for f in findings if f.rule not in COMPARES]
    for (one, its), (other, others) in combinations(about, 2):
        if one.rule != other.rule and its & others:
            yield one, other


def without_covered(findings: Iterable[Finding], rehearsal: Rehearsal, rules: Iterable[Rule]) -> tuple[Finding, ...]:
    """Drop each finding whose cause a rule that comes before its own explains."""
    found = tuple(findings)
    covers = {(rule.name, other) for rule in rules for other in rule.before}
    covered = {id(two) for one, two in overlaps(found, rehearsal) if (one.rule, two.rule) in covers}
    covered |= {id(one) for one, two in overlaps(found, rehearsal) if (two.rule, one.rule) in covers}
    return tuple(finding for finding in found if id(finding) not in covered)
