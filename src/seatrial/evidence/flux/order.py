"""Kustomizations and HelmReleases that fail at first because they lack an object of another, without dependsOn."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from seatrial.evidence.faults import missing_namespaces
from seatrial.evidence.flux.reconciliations import Delayed, definition, delayed, dependencies, missing_kind
from seatrial.model.release import Case, Release, Resource
from seatrial.model.resource import Ref
from seatrial.model.timeline import Event, Reconciled, Rehearsal, StepResult


class Early(Struct, frozen=True):
    """A Kustomization or HelmRelease that came too early, what it lacked, and who has that."""

    own: Resource
    what: Resource
    holder: Ref
    event: Event


def too_early(rehearsal: Rehearsal, case: Case) -> Iterator[Early]:
    """Those that succeed at a later attempt; the first failure of each counts."""
    for late in delayed(rehearsal, case):
        found = _brought(rehearsal, case, late)
        if found is not None and not _depends_on(late.release, rehearsal.steps[late.step], late.own.ref, found[1]):
            yield Early(late.own, found[0], found[1], late.first)


def _brought(rehearsal: Rehearsal, case: Case, late: Delayed) -> tuple[Resource, Ref] | None:
    """What was missing, and which other Kustomization or HelmRelease has it."""
    for other in rehearsal.steps[late.step].reconciled:
        if other.object == late.one.object:
            continue
        if missing := _missing(rehearsal, case, late, other):
            return missing, other.object
    return None


def _missing(rehearsal: Rehearsal, case: Case, late: Delayed, other: Reconciled) -> Resource | None:
    failure = late.first.failure
    wanted = missing_kind(failure)
    if wanted is not None:
        return definition(case, late.release, other, wanted)
    homes = set(missing_namespaces(rehearsal, failure))
    written = (late.release.find(home) for home in homes if home in other.objects)
    return next((one for one in (*written, *case.brought_by(other.object)) if one and one.ref in homes), None)


def _depends_on(release: Release, ended: StepResult, ref: Ref, holder: Ref) -> bool:
    """Whether dependsOn leads from one to the other, or to the Kustomization that contains the other."""
    holders = {one.object for one in ended.reconciled if holder in one.objects} | {holder}
    seen: set[Ref] = set()
    pending = [ref]
    while pending:
        own = release.find(pending.pop())
        for _, other in dependencies(own) if own else ():
            if other in holders:
                return True
            if other not in seen:
                seen.add(other)
                pending.append(other)
    return False
