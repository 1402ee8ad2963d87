"""What changes from one result to another: whether a finding is gone, and which are new."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from seatrial.model.engine import EngineId
from seatrial.model.finding import CERTAINTIES, DAMAGES, Finding, gravity
from seatrial.model.release import Case
from seatrial.model.result import Result
from seatrial.model.timeline import ORDINARY, Outcome
from seatrial.model.trial import Step
from seatrial.rules import all_interruption_rules

NOT_FOUND = (True, len(CERTAINTIES), len(DAMAGES))
"""Less grave than any finding."""
BACK = "rollback"
"""A plan leads forward; what a rollback then does is a warning."""


class ResultWithCases(Struct, frozen=True):
    """A result, and the cases that show it."""

    result: Result
    cases: Sequence[Case]


def is_of_a_fault(finding: Finding) -> bool:
    """Whether only a step that dies, or an order that is explored, shows it: fixes are tried without either."""
    return bool(finding.schedule) or any(rule.name == finding.rule for rule in all_interruption_rules())


def ahead(checked: ResultWithCases) -> ResultWithCases:
    """Without what a rollback does."""
    found = tuple(finding for finding in checked.result.findings if finding.action != BACK)
    return replace(checked, result=replace(checked.result, findings=found))


def rejection(before: Result, after: ResultWithCases | None, finding: Finding) -> str:
    """Why a change is no fix; empty if it is one."""
    if after is None:
        return "the input can then no longer be checked"
    if has(after.result, finding):
        return "the finding remains"
    worse = next(coming(before, after.result, finding), None)
    return f"{worse.rule}: {worse.message}" if worse else ""


def works(result: Result, steps: Sequence[Step]) -> bool:
    """Whether no step of a plan fails, in any case and under any schedule."""
    own = {(step.action, step.source) for step in steps}
    played = (step for one in result.played for step in one.rehearsal.steps if (step.action, step.source) in own)
    return all(step.outcome == "ok" for step in played)


def has(result: Result, finding: Finding) -> bool:
    """Whether a result has the same finding, in the same file: a rollback to an older chart may still have it there."""
    return any(same(other) == same(finding) for other in result.findings)


def same(finding: Finding) -> tuple[str, str]:
    return finding.fingerprint, finding.places[0].file if finding.places else ""


def coming(before: Result, after: Result, fixed: Finding) -> Iterator[Finding]:
    """Findings as grave as the fixed one that are new, or have become graver; and any about a step that worked before.

    What a removal does by design does not count: it shows as soon as a trial gets that far.
    """
    known = {finding.fingerprint: gravity(finding) for finding in reversed(before.findings)}
    worked = dict(_steps(before))
    broken = [step for step, outcome in _steps(after) if outcome != "ok" and worked.get(step) == "ok"]
    for new in after.findings:
        graver = gravity(new) < known.get(new.fingerprint, NOT_FOUND)
        counts = gravity(new) <= gravity(fixed) or any(_is_about(new, step) for step in broken)
        if graver and counts and (fixed.removal or not new.removal):
            yield new


class _ComparedStep(Struct, frozen=True):
    """A step of the ordinary rehearsal of a case."""

    case: str
    engine: EngineId
    number: int
    action: str
    source: str


def _steps(result: Result) -> Iterator[tuple[_ComparedStep, Outcome]]:
    for played in result.played:
        rehearsal = played.rehearsal
        for number, step in enumerate(rehearsal.steps if rehearsal.schedule == ORDINARY else ()):
            yield _ComparedStep(played.case, rehearsal.engine, number, step.action, step.source), step.outcome


def _is_about(finding: Finding, step: _ComparedStep) -> bool:
    return (finding.case, finding.step) == (step.case, step.number) and step.engine in finding.engines
