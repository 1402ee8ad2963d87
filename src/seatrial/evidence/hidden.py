"""What a rehearsal could not show, because its trial stopped before."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from seatrial.model.finding import Finding, Reviewed
from seatrial.model.timeline import Rehearsal

WRITTEN = ("created", "changed", "unchanged")


def with_hidden(trial: Iterable[Reviewed]) -> Iterator[Reviewed]:
    """The rehearsals of one trial; timeless findings name the schedules that stopped before they could show."""
    every = tuple(trial)
    for one in every:
        others = [other.rehearsal for other in every if other is not one]
        yield replace(one, findings=tuple(_with_hidden(finding, others) for finding in one.findings))


def _with_hidden(finding: Finding, others: Iterable[Rehearsal]) -> Finding:
    if not finding.timeless:
        return finding
    return replace(finding, hidden=tuple(other.schedule for other in others if hides(other, finding)))


def hides(rehearsal: Rehearsal, finding: Finding) -> bool:
    """Whether the trial stopped at or before the step of a finding, and no object of it was written in that step."""
    if all("ok" in (ended.outcome, ended.again) for ended in rehearsal.steps[: finding.step + 1]):
        return False
    written = (event for event in rehearsal.of_step(finding.step) if event.effect in WRITTEN)
    return not any(event.object in finding.objects and event.actor in rehearsal.actors for event in written)
