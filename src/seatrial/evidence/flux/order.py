"""Kustomizations and HelmReleases that fail at first because they lack an object of another, without dependsOn."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from seatrial.evidence.flux.reconciliations import definition, delayed, dependencies, missing_kind
from seatrial.model.release import Case, Release, Resource
from seatrial.model.resource import Ref
from seatrial.model.timeline import Event, Reconciled, Rehearsal, StepResult

NO_NAMESPACE = re.compile(r'namespaces "(?P<name>[^"]+)" not found')


class Early(Struct, frozen=True):
    """A Kustomization or HelmRelease that came too early, what it lacked, and who has that."""

    own: Resource
    what: Resource
    holder: Ref
    event: Event


def too_early(rehearsal: Rehearsal, case: Case) -> Iterator[Early]:
    """Those that succeed at a later attempt; the first failure of each counts."""
    for late in delayed(rehearsal, case):
        ended = rehearsal.steps[late.step]
        found = _brought(late.release, ended, late.one, late.first)
        if found is not None and not _depends_on(late.release, ended, late.own.ref, found[1]):
            yield Early(late.own, found[0], found[1], late.first)


def _brought(release: Release, ended: StepResult, one: Reconciled, first: Event) -> tuple[Resource, Ref] | None:
    """What was missing, and which other Kustomization or HelmRelease has it."""
    for other in ended.reconciled:
        if other.object == one.object:
            continue
        ref = _missing(release, other, first.message)
        written = release.find(ref) if ref else None
        if written is not None:
            return written, other.object
    return None


def _missing(release: Release, other: Reconciled, words: str) -> Ref | None:
    wanted = missing_kind(words)
    if wanted is not None:
        return definition(release, other, wanted)
    said = NO_NAMESPACE.search(words)
    namespace = Ref("Namespace", "", said["name"]) if said else None
    return namespace if namespace in other.objects else None


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
