"""Kustomizations of Flux that fail at first for what another one brings, on which they do not depend."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from seatrial.case import Case, Release, Resource
from seatrial.resource import Ref
from seatrial.rules.reconciliations import definition, dependencies, kustomizations, missing_kind
from seatrial.timeline import Event, Reconciled, Rehearsal, StepResult

NO_NAMESPACE = re.compile(r'namespaces "(?P<name>[^"]+)" not found')


class Early(Struct, frozen=True):
    """A Kustomization that came too early, for what, and who brings that."""

    own: Resource
    what: Resource
    bringer: Ref
    event: Event


def too_early(rehearsal: Rehearsal, case: Case) -> Iterator[Early]:
    """Those that end well at a later attempt; the first failure of each counts."""
    for step, ended in enumerate(rehearsal.steps):
        release = case.releases[step]
        for one in kustomizations(ended) if release else ():
            own = release.find(one.object) if release else None
            if release is None or own is None or one.message or one.attempts < 2:
                continue
            said = (e for e in rehearsal.of_step(step) if e.object == one.object and e.effect == "said")
            first = next(event for event in said if event.message != "Ready")
            found = _brought(release, ended, one, first)
            if found is not None and not _depends_on(release, ended, own.ref, found[1]):
                yield Early(own, found[0], found[1], first)


def _brought(release: Release, ended: StepResult, one: Reconciled, first: Event) -> tuple[Resource, Ref] | None:
    """What was missing, and which other Kustomization or HelmRelease brings it."""
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


def _depends_on(release: Release, ended: StepResult, ref: Ref, bringer: Ref) -> bool:
    """Whether dependsOn leads from one to the other, or to the Kustomization that holds the other."""
    holders = {one.object for one in ended.reconciled if bringer in one.objects} | {bringer}
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
