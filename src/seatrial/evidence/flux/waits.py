"""Flux health checks that timed out: which objects, what they lack, and what depends on the waiting one."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from seatrial.evidence.described import products
from seatrial.evidence.faults import faults
from seatrial.evidence.flux.reconciliations import GROUP, dependencies, holder
from seatrial.evidence.moment import moments
from seatrial.graph import needs_of
from seatrial.model.release import Case, Resource
from seatrial.model.resource import Ref
from seatrial.model.timeline import Reconciled, Rehearsal, StepResult

OWN_GROUPS = (GROUP, "helm.toolkit.fluxcd.io")


class TimedOutWait(Struct, frozen=True):
    """A Kustomization or HelmRelease that is not Ready because its objects are not."""

    step: int
    reconciled: Reconciled
    own: Resource
    waited: tuple[Ref, ...]
    statuses: tuple[str, ...]
    behind: tuple[tuple[Resource, int], ...]
    """Its dependents that never started, with the index in their dependsOn."""


def timed_out_waits(rehearsal: Rehearsal, case: Case) -> Iterator[TimedOutWait]:
    """Each Kustomization or HelmRelease whose wait timed out, once."""
    reported: set[Ref] = set()
    for moment in moments(rehearsal, case):
        for one in moment.ended.reconciled:
            own = case.written(moment.index, one.object)
            if own is None or one.object in reported or one.acts[-1:] == ("uninstall",):
                continue
            statuses = {fault.object: fault.status for fault in faults(one.failure, "not-ready")}
            waited = tuple(ref for ref in one.objects if ref in statuses and ref.group not in OWN_GROUPS)
            if waited:
                reported.add(one.object)
                status = tuple(statuses[ref] for ref in waited)
                yield TimedOutWait(
                    moment.index, one, own, waited, status, tuple(_behind(case, moment.index, moment.ended, one.object))
                )


def lacked(rehearsal: Rehearsal, case: Case, found: TimedOutWait) -> Iterator[tuple[Ref, Ref | None]]:
    """What the awaited objects lack, and which Kustomization or HelmRelease has it."""
    ended = rehearsal.steps[found.step]
    users = [user for ref in found.waited if (user := case.written(found.step, ref))]
    named = {need.object for user in users for need in needs_of(user) if not need.optional}
    for ref in ended.lacking:
        if ref in named:
            yield ref, holder(ended, ref)


def is_made_by_operator(case: Case, ref: Ref) -> bool:
    """Whether an operator creates the object from another one of the trial: other rules report that."""
    return any(ref in products(case, resource) for resource in case.all_resources())


def _behind(case: Case, step: int, ended: StepResult, ref: Ref) -> Iterator[tuple[Resource, int]]:
    never = (one.object for one in ended.reconciled if not one.attempts)
    for resource in (case.written(step, other) for other in never):
        for index, other in dependencies(resource) if resource else ():
            if resource is not None and other == ref:
                yield resource, index
