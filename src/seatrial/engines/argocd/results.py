"""The result of one task of a sync, and how its object's health changes it."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from seatrial.engines.argocd.tasks import ArgocdTask
from seatrial.model.refusal import NO_FAILURE, Failure
from seatrial.model.timeline import SyncTask
from seatrial.readiness.argocd.verdict import (
    DEGRADED,
    HEALTHY,
    PROGRESSING,
    SUSPENDED,
    UNKNOWN,
    Health,
)

OF_A_HOOK = {UNKNOWN: "Failed", DEGRADED: "Failed", PROGRESSING: "Running", SUSPENDED: "Running"}
"""The state of a hook's task by its health; anything else is success. `getOperationPhase` in sync_context.go."""
OF_A_RESOURCE = {HEALTHY: "Succeeded", DEGRADED: "Failed"}
"""The same for regular resources; anything else leaves the task running."""
ERROR = "error"
NOTHING = "nothing, which is not healthy"


class TaskResult(Struct, frozen=True):
    """The result as in `timeline.SyncTask`: all that an operation keeps between two passes."""

    status: str = ""
    state: str = ""
    message: str = ""
    failure: Failure = NO_FAILURE


PENDING = TaskResult()


def judged(task: ArgocdTask, result: TaskResult, verdict: Health | None) -> TaskResult:
    """The result of a running task, given the health of its object."""
    if verdict is None:
        return replace(
            result, state="Succeeded", message=f"{task.ref.name} created" if task.is_hook else result.message
        )
    if task.is_hook and verdict.broken:
        return replace(result, state="Error", message=f"failed to get resource health: {verdict.message}")
    states = OF_A_HOOK if task.is_hook else OF_A_RESOURCE
    state = states.get(verdict.status, "Succeeded" if task.is_hook else "")
    if verdict.broken or not state:
        return result
    return replace(result, state=state, message=verdict.message or result.message)


def summary(verdict: Health | None) -> str:
    """The health of an object in one line."""
    if verdict is None:
        return ""
    status = ERROR if verdict.broken else verdict.status or NOTHING
    return f"{status}: {verdict.message}" if verdict.message else status


def recorded(task: ArgocdTask, result: TaskResult, health: str, *, waited: bool) -> SyncTask:
    """A task for the timeline."""
    return SyncTask(
        object=task.ref,
        phase=task.phase,
        wave=task.wave,
        hook=task.is_hook,
        prune=task.is_prune,
        status=result.status,
        state=result.state,
        message=result.message,
        health=health,
        waited=waited,
        failure=result.failure,
    )
