"""Syncs that failed because of an unserved kind, and the CRD that would serve it."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from seatrial.evidence.argocd.syncs import operations
from seatrial.evidence.faults import has_fault
from seatrial.evidence.unserved import Unserved, defined_by, generated_by
from seatrial.kinds.tables.catalogue import CATALOGUE
from seatrial.model.release import Case, Resource
from seatrial.model.timeline import Operation, Rehearsal, SyncTask

BUILT_IN = frozenset(group for group, _ in CATALOGUE)


class Unknown(Struct, frozen=True):
    """A failed operation, and its objects whose kind is not served."""

    step: int
    operation: Operation
    resources: tuple[Resource, ...]
    in_its_wave: bool
    """Whether the sync had started, and the kind was missing in its wave."""


def unknown_kinds(rehearsal: Rehearsal, case: Case) -> Iterator[Unknown]:
    """Each Application once."""
    reported: set[str] = set()
    for step, operation in operations(rehearsal):
        if operation.phase != "Failed" or operation.app in reported:
            continue
        refused = [task for task in operation.tasks if _is_unknown(task)]
        resources = tuple(r for task in refused if (r := case.written(step, task.object)))
        if resources:
            reported.add(operation.app)
            begun = any(task.status and task not in refused for task in operation.tasks)
            yield Unknown(step, operation, resources, in_its_wave=begun)


def generator_of(case: Case, unknown: Unknown) -> Resource | None:
    """The object of the trial from which an operator creates the CRD of one of the kinds."""
    found = (generated_by(case, _wanted(resource)) for resource in unknown.resources)
    return next(filter(None, found), None)


def definition_of(case: Case, unknown: Unknown) -> Resource | None:
    """The CRD of one of the kinds, in any release of the trial, or one that an object of the trial brings."""
    known = [*case.all_resources(), *(one.resource for one in case.brought)]
    found = (defined_by(known, _wanted(resource)) for resource in unknown.resources)
    return next(filter(None, found), None)


def _wanted(resource: Resource) -> Unserved:
    return Unserved(resource.ref.kind, str(resource.body.get("apiVersion", "")), (resource.ref,), (resource,))


def _is_unknown(task: SyncTask) -> bool:
    """Rejected because of its kind, which is not a built-in kind in a removed version."""
    if task.status != "SyncFailed" or task.object.group in BUILT_IN:
        return False
    return not task.state or has_fault(task.failure, "unserved")
