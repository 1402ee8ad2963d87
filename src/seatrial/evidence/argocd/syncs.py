"""Argo CD syncs: operations, their tasks, and Argo CD's events."""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.moment import Moment
from seatrial.model.resource import Ref
from seatrial.model.timeline import Event, Operation, Rehearsal, SyncTask

ARGOCD = "argocd"


def is_argocd(rehearsal: Rehearsal) -> bool:
    return rehearsal.engine.name == ARGOCD


def operations(rehearsal: Rehearsal) -> Iterator[tuple[int, Operation]]:
    """Every sync operation of a trial, with its step."""
    return ((step, operation) for step, ended in enumerate(rehearsal.steps) for operation in ended.operations)


def done_by_argocd(moment: Moment, ref: Ref) -> Iterator[Event]:
    """Argo CD's events for an object in a step."""
    return (event for event in moment.events() if event.actor == ARGOCD and event.object == ref)


def pending(operation: Operation) -> list[SyncTask]:
    """The tasks that an operation never reached, without SyncFail hooks."""
    return [task for task in operation.tasks if not task.status and task.phase != "SyncFail"]


def in_words(task: SyncTask) -> str:
    """`PreSync wave -5`"""
    return f"{task.phase} wave {task.wave}"


def look_at_operation(operation: Operation) -> str:
    """The command that shows the state of an operation."""
    named = f"{operation.app} -n {operation.namespace}"
    return f"kubectl get application {named} -o jsonpath='{{.status.operationState.message}}'"
