"""Child Applications in waves, and those that needed an object of an earlier child that did not exist yet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from seatrial.evidence.argocd.syncs import operations
from seatrial.evidence.argocd.unserved import definition_of, unknown_kinds
from seatrial.evidence.faults import missing_namespaces
from seatrial.evidence.moment import Moment
from seatrial.kinds.operators.argocd import GROUP
from seatrial.model.release import Case
from seatrial.model.resource import Ref
from seatrial.model.timeline import Operation, Rehearsal, SyncTask


class OutOfTurn(Struct, frozen=True):
    """A child Application that failed because an earlier one had not created something yet."""

    step: int
    parent: Operation
    earlier: SyncTask
    later: SyncTask
    failed: Operation
    lacks: Ref


def out_of_turn(rehearsal: Rehearsal, case: Case) -> Iterator[OutOfTurn]:
    for step, parent in operations(rehearsal):
        children = {t.object.name: t for t in parent.tasks if (t.object.group, t.object.kind) == (GROUP, "Application")}
        if len({task.place for task in children.values()}) < 2:
            continue
        for failed in rehearsal.steps[step].operations:
            for lacks in _lacks(Moment(rehearsal, case, step), failed) if failed.app in children else ():
                brings = _brings(case, rehearsal.steps[step].operations, lacks)
                if brings in children and children[brings].place != children[failed.app].place:
                    yield OutOfTurn(step, parent, children[brings], children[failed.app], failed, lacks)


def apps_out_of_turn(rehearsal: Rehearsal, case: Case) -> set[str]:
    """The names of the Applications that are reported as such."""
    return {one.failed.app for one in out_of_turn(rehearsal, case)}


def _lacks(moment: Moment, failed: Operation) -> Iterator[Ref]:
    """What an Application lacked: a kind, a namespace, or what its pods need."""
    for unknown in unknown_kinds(moment.rehearsal, moment.case):
        if unknown.operation == failed and (definition := definition_of(moment.case, unknown)):
            yield definition.ref
    for task in failed.tasks:
        if task.status == "SyncFailed":
            yield from missing_namespaces(moment.rehearsal, task.failure)
    if failed.phase == "Running":
        yield from moment.ended.lacking


def _brings(case: Case, among: Iterable[Operation], ref: Ref) -> str:
    if brought := case.bringer(ref):
        return brought.by.name
    return next((one.app for one in among if any(task.object == ref for task in one.tasks)), "")
