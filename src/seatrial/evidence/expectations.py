"""What a trial file says must be so, held against a rehearsal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from seatrial.model.finding import Finding
from seatrial.model.resource import Ref
from seatrial.model.timeline import Rehearsal
from seatrial.model.trial import Expectations, Expected, StepExpectation

GONE = ("deleted",)


def unmet(rehearsal: Rehearsal, expected: Expected) -> Iterator[str]:
    """Each expectation that is not met, as a sentence. A step without one must be ok."""
    for number, ended in enumerate(rehearsal.steps):
        wanted = expected.steps[number] if number < len(expected.steps) else StepExpectation()
        where = f"step {number + 1}, {ended.action}"
        outcome = wanted.outcome or "ok"
        if ended.outcome != outcome:
            why = f": {ended.error}" if ended.error else ""
            yield f"{where}: {ended.outcome}, not {outcome}{why}"
        there = _there(rehearsal, number)
        yield from (f"{where}: {name} does not exist" for name in wanted.exists if name not in there)
        yield from (f"{where}: {name} exists" for name in wanted.absent if name in there)
    for name in expected.trial.never_deleted:
        yield from _deletions(rehearsal, name)


def unwanted(findings: Iterable[Finding], trial: Expectations) -> Iterator[str]:
    """Each finding of a rule that must report nothing."""
    for finding in findings:
        if _names(trial.no_findings, finding) and not _names(trial.allow_findings, finding):
            yield f"{finding.rule}: {finding.message}"


def _names(rules: Iterable[str], finding: Finding) -> bool:
    return any(rule == finding.rule or finding.code.startswith(rule.upper()) for rule in rules)


def _there(rehearsal: Rehearsal, step: int) -> set[str]:
    """The objects in the cluster when a step has ended."""
    last: dict[Ref, str] = {}
    for event in rehearsal.timeline:
        if event.step <= step and event.effect in ("created", "changed", "unchanged", "deleting", "deleted"):
            last[event.object] = event.effect
    return {str(ref) for ref, effect in last.items() if effect not in GONE}


def _deletions(rehearsal: Rehearsal, name: str) -> Iterator[str]:
    seen = [event for event in rehearsal.timeline if str(event.object) == name]
    if not any(event.effect == "created" for event in seen):
        yield f"{name} must never be deleted, and was never created"
    for event in seen:
        # Objects of the step -1 are there before the trial.
        removes = event.step >= 0 and rehearsal.steps[event.step].role == "remove"
        if event.effect == "deleted" and not removes:
            yield f"step {event.step + 1}, {rehearsal.steps[event.step].action}: {name} is deleted"
            return
