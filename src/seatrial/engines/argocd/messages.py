"""The messages of an operation, `status.operationState.message`, word for word.

Upstream: `setRunningPhase`, `executeSyncFailPhase` and `Sync` in gitops-engine/pkg/sync/sync_context.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from seatrial.engines.argocd import versions
from seatrial.engines.argocd.tasks import ArgocdTask
from seatrial.model.resource import group_of, metadata, version_of

ALL_RUN = "successfully synced (all tasks run)"
NO_MORE = "successfully synced (no more tasks)"
INVALID = "one or more synchronization tasks are not valid"
DRY_RUN_FAILED = "one or more objects failed to apply (dry run)"
NAMESPACE_FAILED = "the namespace failed to apply"
APPLY_FAILED = "one or more objects failed to apply"
UNSUCCESSFUL = "one or more synchronization tasks completed unsuccessfully"
FAIL_HOOKS_FAILED = "one or more SyncFail hooks failed"


NOT_FOUND = "the server could not find the requested resource"
TOO_LONG = "metadata.annotations: Too long: must have at most 262144 bytes"
HELP_WITH_SIZE = (
    "\n -Additional Info: This error usually means that you are trying to add a large resource on client side. "
    "Consider using Server-side apply or syncing with replace enabled. Note: Syncing with Replace enabled is "
    "potentially destructive as it may cause resource deletion and re-creation."
)


def waiting(tasks: Sequence[ArgocdTask], version: tuple[int, int], *, deletion: bool = False) -> str:
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


def confirmation(tasks: Sequence[ArgocdTask], version: tuple[int, int]) -> str:
    """The objects whose pruning must be confirmed by hand."""
    more = f" and {len(tasks) - 1} more resources" if len(tasks) > 1 else ""
    if versions.has(version, "hooks first in messages"):
        return f"waiting for pruning confirmation of {tasks[0]}{more}"
    body = tasks[0].body
    return f"Waiting for pruning confirmation of {body['apiVersion']}/{tasks[0].ref.kind}/{tasks[0].ref.name}{more}"


def augmented(task: ArgocdTask, message: str, installed: str) -> str:
    """The message of an object as its result shows it; `installed` is the apiVersion in which its kind is served.

    Upstream: `AugmentSyncMsg` in util/argo/argo.go.
    """
    if TOO_LONG in message and HELP_WITH_SIZE not in message:
        return f"{message} {HELP_WITH_SIZE}"
    if NOT_FOUND not in message:
        return message
    kind = f"{task.ref.group}/{task.ref.kind}"
    named = f"for requested resource {metadata(task.body).get('namespace') or ''}/{task.ref.name}."
    if not installed:
        crd = f'Make sure the "{task.ref.kind}" CRD is installed on the destination cluster.'
        return f"The Kubernetes API could not find {kind} {named} {crd}"
    version, other = version_of(str(task.body["apiVersion"])), f"{group_of(installed)}/{task.ref.kind}"
    there = f'Version "{version_of(installed)}" of {other} is installed on the destination cluster.'
    return f'The Kubernetes API could not find version "{version}" of {kind} {named} {there}'


def because(message: str, reasons: Iterable[str]) -> str:
    """A failure with the messages of the failed objects; upstream joins them in random order."""
    messages = list(dict.fromkeys(reasons))
    return f"{message}, reason: {','.join(messages)}" if messages else message


def invalid(reasons: Iterable[str], version: tuple[int, int]) -> str:
    messages = sorted(set(filter(None, reasons)))
    if not messages or not versions.has(version, "reasons of invalid tasks"):
        return INVALID
    return f"{INVALID}: {'; '.join(messages)}"
