"""The messages of an operation, `status.operationState.message`, word for word.

Upstream: `setRunningPhase`, `executeSyncFailPhase` and `Sync` in gitops-engine/pkg/sync/sync_context.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from seatrial.engines.argocd import versions
from seatrial.engines.argocd.tasks import Task

ALL_RUN = "successfully synced (all tasks run)"
NO_MORE = "successfully synced (no more tasks)"
INVALID = "one or more synchronization tasks are not valid"
DRY_RUN_FAILED = "one or more objects failed to apply (dry run)"
NAMESPACE_FAILED = "the namespace failed to apply"
APPLY_FAILED = "one or more objects failed to apply"
UNSUCCESSFUL = "one or more synchronization tasks completed unsuccessfully"
FAIL_HOOKS_FAILED = "one or more SyncFail hooks failed"


def waiting(tasks: Sequence[Task], version: tuple[int, int], *, deletion: bool = False) -> str:
    """What a running operation waits for."""
    hooks_first = versions.has(version, "hooks first in messages")
    hooks = [task for task in tasks if task.is_hook]
    first = hooks[0] if hooks and hooks_first else tasks[0]
    reason = "completion of hook" if first.is_hook else "healthy state of"
    if deletion:
        reason = "deletion of hook" if hooks and hooks_first else "deletion of"
    others = "hooks" if (len(hooks) == len(tasks) if hooks_first else first.is_hook) else "resources"
    more = f" and {len(tasks) - 1} more {others}" if len(tasks) > 1 else ""
    return f"waiting for {reason} {first}{more}"


def confirmation(tasks: Sequence[Task], version: tuple[int, int]) -> str:
    """The objects whose pruning must be confirmed by hand."""
    more = f" and {len(tasks) - 1} more resources" if len(tasks) > 1 else ""
    if versions.has(version, "hooks first in messages"):
        return f"waiting for pruning confirmation of {tasks[0]}{more}"
    body = tasks[0].body
    return f"Waiting for pruning confirmation of {body['apiVersion']}/{tasks[0].ref.kind}/{tasks[0].ref.name}{more}"


def because(message: str, reasons: Iterable[str]) -> str:
    """A failure with the messages of the failed objects; upstream joins them in random order."""
    told = list(dict.fromkeys(reasons))
    return f"{message}, reason: {','.join(told)}" if told else message


def invalid(reasons: Iterable[str], version: tuple[int, int]) -> str:
    told = sorted(set(filter(None, reasons)))
    if not told or not versions.has(version, "reasons of invalid tasks"):
        return INVALID
    return f"{INVALID}: {'; '.join(told)}"
