"""The rehearsal that shows a finding, and the events in it that prove it. Formats nothing."""

from __future__ import annotations

from msgspec import Struct

from seatrial.model.finding import Finding
from seatrial.model.result import Played, Result
from seatrial.model.timeline import Event


class Proof(Struct, frozen=True):
    """The events behind a finding, and the rehearsal whose timeline they are from."""

    played: Played
    events: tuple[Event, ...]


def proof_of(finding: Finding, result: Result) -> Proof | None:
    """With several inputs, of the rehearsal that has the objects of the finding."""
    wanted, objects = set(finding.evidence), set(finding.objects)
    found = [
        Proof(played, tuple(event for event in played.rehearsal.timeline if event.index in wanted))
        for played in (*result.played, *result.continued)
        if _may_show(played, finding)
    ]
    return min(found, key=lambda proof: all(event.object not in objects for event in proof.events), default=None)


def _may_show(played: Played, finding: Finding) -> bool:
    rehearsal = played.rehearsal
    return (
        played.case == finding.case
        and (rehearsal.repaired, rehearsal.mix) == (finding.after, finding.schedule)
        and rehearsal.engine in finding.engines[:1]
        and rehearsal.schedule in (finding.schedules[:1] or (rehearsal.schedule,))
    )
