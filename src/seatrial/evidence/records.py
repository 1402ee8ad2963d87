"""Helm's release records in the timeline: the last revision and its status."""

from __future__ import annotations

from msgspec import Struct

from seatrial.evidence.moment import Moment
from seatrial.helm.records import NAME
from seatrial.model.resource import Ref, labels_of
from seatrial.model.timeline import Event, Rehearsal, StepResult


class Record(Struct, frozen=True):
    """One revision as Helm last recorded it."""

    ref: Ref
    release: str
    revision: int
    status: str
    written: Event


def last_record(rehearsal: Rehearsal, release: str, namespace: str, *, before_step: int) -> Record | None:
    """The newest record when a step begins."""
    records = records_of(rehearsal, release, namespace, before_step=before_step)
    return records[max(records)] if records else None


def records_of(rehearsal: Rehearsal, release: str, namespace: str, *, before_step: int) -> dict[int, Record]:
    """The records when a step begins, by revision."""
    records: dict[int, Record] = {}
    for event in rehearsal.timeline:
        named = NAME.fullmatch(event.object.name) if event.object.kind == "Secret" else None
        if named is None or event.step >= before_step:
            continue
        if (named["release"], event.object.namespace) != (release, namespace):
            continue
        revision = int(named["revision"])
        if event.effect == "deleted":
            records.pop(revision, None)
        elif event.after is not None:
            status = labels_of(event.after).get("status", "")
            records[revision] = Record(event.object, release, revision, status, event)
    return records


def recorded_by(moment: Moment) -> int | None:
    """The last step before this one that recorded a revision of the same release."""
    begun = moment.ended
    for earlier in range(moment.index - 1, -1, -1):
        if _recorded(moment.at(earlier), begun):
            return earlier
    return None


def _recorded(moment: Moment, begun: StepResult) -> bool:
    return any(
        event.effect == "created"
        and event.object.namespace == begun.namespace
        and (named := NAME.fullmatch(event.object.name)) is not None
        and named["release"] == begun.release
        for event in moment.events()
    )
