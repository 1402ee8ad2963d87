"""What stops the steps of a rehearsal, as repairs: with them the same trial goes on to what comes next."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from operator import or_

from msgspec.structs import replace

from seatrial.evidence.causes import COMPARES
from seatrial.evidence.compare.engine_differences import ComparedRehearsal
from seatrial.evidence.failures import StepFailure, failures
from seatrial.helm.records import NAME as RECORD
from seatrial.model.finding import Finding
from seatrial.model.refusal import Failure, Fault
from seatrial.model.release import Case
from seatrial.model.repair import NO_REPAIRS, Repairs, repairs
from seatrial.model.resource import Ref
from seatrial.model.timeline import Event, Rehearsal, StepResult

REPAIR = "repair"
"""The actor of events that happen only because of a repair."""
CARRIERS = ("argoproj.io", "kustomize.toolkit.fluxcd.io", "helm.toolkit.fluxcd.io", "source.toolkit.fluxcd.io")
"""Groups of objects that stand for others: they get ready with what they deploy."""


def repairs_of(rehearsal: Rehearsal, case: Case) -> Repairs:
    """The repairs of every step that is stopped."""
    return reduce(or_, (_repairs(one, rehearsal.steps[one.step]) for one in _stopped(rehearsal, case)), NO_REPAIRS)


def stopped(rehearsal: Rehearsal, case: Case) -> Iterator[int]:
    """The steps that obstacles stop."""
    return (failure.step for failure in _stopped(rehearsal, case))


def _stopped(rehearsal: Rehearsal, case: Case) -> Iterator[StepFailure]:
    """Every step that fails or hangs by itself, and not because an earlier one did.

    A removal that stops hides nothing.
    """
    for failure in failures(rehearsal, case):
        if failure.follows is None and rehearsal.steps[failure.step].role != "remove":
            yield failure


def only_new(
    found: Iterable[Finding], known: Sequence[Finding], seen: Sequence[ComparedRehearsal]
) -> Iterator[Finding]:
    """Findings that show only after repairs, and that are no consequence of one.

    Whatever is about a repaired object, or rests on an event that only a repair made, is left out.
    """
    reported = list(known)
    for finding in found:
        rehearsal = _shown_in(finding, seen)
        again = not finding.objects or any(_is_same(finding, other) for other in reported)
        if rehearsal is None or again or finding.rule in COMPARES:
            continue
        about, evidence = {str(ref) for ref in finding.objects}, set(finding.evidence)
        made_up = any(event.actor == REPAIR for event in rehearsal.timeline if event.index in evidence)
        if about.isdisjoint(rehearsal.repaired) and not made_up:
            reported.append(finding)
            yield replace(finding, after=rehearsal.repaired)


def _is_same(finding: Finding, other: Finding) -> bool:
    """Whether a finding tells again what another one did: the same rule about the main object of one of them."""
    if finding.rule != other.rule or not other.objects:
        return False
    return finding.objects[0] in other.objects or other.objects[0] in finding.objects


def _shown_in(finding: Finding, seen: Sequence[ComparedRehearsal]) -> Rehearsal | None:
    """The rehearsal that the evidence of a finding is from."""
    wanted = finding.case, finding.engines[0], finding.schedules[0]
    same = (one.rehearsal for one in seen if (one.case.name, one.rehearsal.engine, one.rehearsal.schedule) == wanted)
    return next(same, None)


def _repairs(failure: StepFailure, ended: StepResult) -> Repairs:
    """A webhook, a kind or a namespace is repaired for all objects that it stops.

    A namespace that is being deleted is gone at once, so that it can be created again.
    """
    refused = [event for event in failure.events if event.effect == "refused" and event.refusal is not None]
    webhooks = {name for event in refused for name in _webhook(event)}
    namespaces = {ref.name for event in refused for ref in event.missing if ref.kind == "Namespace"}
    faults = list(_faults(ended))
    kinds = {fault.kind for fault in faults if fault.of == "unserved" and fault.kind is not None}
    going = {ref for event in refused for ref in _going_namespace(event)}
    others = {
        event.object
        for event in refused
        if any(_webhook(event)) or _lacks_namespace(event) or any(_going_namespace(event))
    }
    unserved = {(kind.group, kind.kind) for kind in kinds}
    waiting = (ref for ref in failure.objects if (ref.group, ref.kind) not in unserved and not _is_carrier(ref))
    stopped = going | {ref for ref in waiting if ref not in others}
    return repairs(stopped, webhooks, kinds, namespaces)


def _webhook(event: Event) -> Iterator[str]:
    """The name of a webhook that did not answer; one that converts is named after its kind."""
    call = event.refusal.call if event.refusal is not None else None
    if call is not None and call.webhook:
        yield call.webhook
    elif call is not None and call.converts is not None:
        yield f"{call.converts.kind}.{call.converts.group}"


def _going_namespace(event: Event) -> Iterator[Ref]:
    """The namespace of an object that cannot be created in it, because it is being deleted."""
    blocks = event.refusal.terminating if event.refusal is not None else None
    if blocks is not None and blocks.kind == "Namespace" and event.object.kind != "Namespace":
        yield blocks


def _lacks_namespace(event: Event) -> bool:
    return any(ref.kind == "Namespace" for ref in event.missing)


def _faults(ended: StepResult) -> Iterator[Fault]:
    found: tuple[Failure, ...] = (
        ended.failure,
        *(operation.failure for operation in ended.operations),
        *(task.failure for operation in ended.operations for task in operation.tasks),
        *(one.failure for one in ended.reconciled),
    )
    return (fault for failure in found for fault in failure.faults)


def _is_carrier(ref: Ref) -> bool:
    return ref.group in CARRIERS or bool(ref.kind == "Secret" and RECORD.fullmatch(ref.name))
