"""What a rehearsal could not show, because its trial stopped before."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from seatrial.evidence.explained import explains
from seatrial.evidence.failures import failures
from seatrial.model.finding import Finding, Reviewed
from seatrial.model.timeline import Rehearsal

WRITTEN = ("created", "changed", "unchanged")


def with_hidden(trial: Iterable[Reviewed]) -> Iterator[Reviewed]:
    """The rehearsals of one trial; timeless findings name the schedules that stopped before they could show."""
    every = tuple(trial)
    for one in every:
        others = [other.rehearsal for other in every if other is not one]
        yield replace(one, findings=tuple(_with_hidden(finding, one, others) for finding in one.findings))


def _with_hidden(finding: Finding, one: Reviewed, others: Iterable[Rehearsal]) -> Finding:
    if finding.timeless:
        return replace(finding, hidden=tuple(other.schedule for other in others if hides(other, finding)))
    # Where a CRD was not served in time, the step was repeated, and ended as it does here.
    ended = one.rehearsal.steps[finding.step].outcome
    late = tuple(other.schedule for other in others if other.steps[finding.step].again == ended)
    return replace(finding, hidden=late) if late and _ends_the_step(finding, one) else finding


def _ends_the_step(finding: Finding, one: Reviewed) -> bool:
    """Whether its step fails or hangs because of it."""
    own = (failure for failure in failures(one.rehearsal, one.case) if failure.step == finding.step)
    return any(explains(finding, failure) for failure in own)


def hides(rehearsal: Rehearsal, finding: Finding) -> bool:
    """Whether the trial stopped at or before the step of a finding, and no object of it was written in that step."""
    if all("ok" in (ended.outcome, ended.again) for ended in rehearsal.steps[: finding.step + 1]):
        return False
    written = (event for event in rehearsal.of_step(finding.step) if event.effect in WRITTEN)
    return not any(event.object in finding.objects and event.actor in rehearsal.actors for event in written)
