"""ApplicationSets with `RollingSync`: which Applications may sync, and the progress of each.

Upstream: `applicationset/progressivesync/progressive_sync.go` of Argo CD 3.5; `applicationset_controller.go` before
3.3, where one whose sync failed could be synced again and again: here it keeps still in all versions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct

from seatrial.engines.argocd import versions
from seatrial.model.resource import Body, Ref, dig, labels_of, listed, ref_of
from seatrial.readiness.argocd.verdict import HEALTHY

WAITING, PENDING, PROGRESSING = "Waiting", "Pending", "Progressing"
STRATEGY = "RollingSync"
NOT_FOUND = "No Application status found, defaulting status to Waiting"
CHANGED = "Application has pending changes, setting status to Waiting"
MOVED = "Application moved to Pending status, watching for the Application resource to start Progressing"
OF_OPERATION = {
    "Running": "Application resource became Progressing, updating status from Pending to Progressing",
    "Succeeded": "Application resource completed a sync successfully, updating status from Pending to Progressing",
    "Failed": "Application resource completed a sync, updating status from Pending to Progressing",
    "Error": "Application resource completed a sync, updating status from Pending to Progressing",
}
"""Phases that let a pending Application progress: an operation has started, however it ended."""
BECAME = "Application resource became Healthy, updating status from Progressing to Healthy"
SYNCED = "Application resource has synced, updating status to"
COMPLETED = "ApplicationSet Rollout has completed"


class RolloutStep(Struct, frozen=True):
    apps: tuple[Ref, ...]
    at_once: int | str | None = None
    """`maxUpdate`: how many may sync at a time, as a number or percentage; None is all."""


class Rollout(Struct, frozen=True):
    """The steps of one ApplicationSet."""

    ref: Ref
    apps: tuple[Ref, ...]
    steps: tuple[RolloutStep, ...]
    deletes_backwards: bool = False
    """`deletionOrder: Reverse`."""

    def step_of(self, app: Ref) -> int:
        """From 1; -1 if no step selects it."""
        return next((number for number, step in enumerate(self.steps, start=1) if app in step.apps), -1)


class RolloutProgress(Struct, frozen=True):
    """An entry of `status.applicationStatus`."""

    status: str
    message: str
    revision: str


class ApplicationStatus(Struct, frozen=True):
    """What an Application shows of itself."""

    revision: str
    synced: bool
    health: str
    operation: str = ""
    """The phase of the operation that started since it is pending."""


def rollout_of(application_set: Body, applications: tuple[Body, ...]) -> Rollout | None:
    """The steps of a set, if it has any. If several steps select an Application, the first counts."""
    strategy = dig(application_set, "spec", "strategy") or {}
    steps = listed(strategy, "rollingSync", "steps")
    if strategy.get("type") != STRATEGY or not steps:
        return None
    return Rollout(
        ref=ref_of(application_set),
        apps=tuple(map(ref_of, applications)),
        steps=tuple(
            RolloutStep(tuple(ref_of(app) for app in applications if _is_selected(app, step)), step.get("maxUpdate"))
            for step in steps
        ),
        deletes_backwards=str(strategy.get("deletionOrder") or "").lower() == "reverse",
    )


def judged(before: RolloutProgress | None, seen: ApplicationStatus, version: tuple[int, int]) -> RolloutProgress:
    """The next progress of an Application, given what it shows now."""
    now = _begun(before, seen, version)
    healthy = seen.synced and seen.health == HEALTHY
    if now.status == WAITING and seen.synced:
        status = HEALTHY if healthy else PROGRESSING
        return RolloutProgress(status, f"{SYNCED} {status}", seen.revision)
    if now.status == PENDING and seen.operation:
        return RolloutProgress(PROGRESSING, OF_OPERATION[seen.operation], seen.revision)
    if now.status == PROGRESSING and healthy:
        return RolloutProgress(HEALTHY, BECAME, seen.revision)
    return now


def may_sync(rollout: Rollout, progress: Mapping[Ref, RolloutProgress]) -> Iterator[Ref]:
    """The waiting Applications that may sync now: those of all steps up to the first unhealthy one."""
    allowed = _allowed(rollout, progress)
    # One that no step selects counts as one of the first step, though it never syncs.
    places = {app: max(rollout.step_of(app), 1) - 1 for app in rollout.apps}
    syncing = [0] * len(rollout.steps)
    for app, place in places.items():
        syncing[place] += progress[app].status in (PENDING, PROGRESSING)
    for app, place in places.items():
        total = sum(other == place for other in places.values())
        room = _limit(rollout.steps[place].at_once, total)
        if progress[app].status == WAITING and app in allowed and syncing[place] < room:
            syncing[place] += 1
            yield app


def current_step(rollout: Rollout, progress: Mapping[Ref, RolloutProgress]) -> int | None:
    """The first step with an unhealthy Application; None when all are done."""
    for number, step in enumerate(rollout.steps, start=1):
        if any(progress[app].status != HEALTHY for app in step.apps):
            return number
    return None


def _is_selected(application: Body, step: Body) -> bool:
    labels = labels_of(application)
    for expression in listed(step, "matchExpressions"):
        value = labels.get(str(expression.get("key")))
        among = value in (expression.get("values") or ())
        match expression.get("operator"):
            case "In" if not among:
                return False
            case "NotIn" if among:
                return False
            case "In" | "NotIn":
                continue
            case _ if value is not None:
                return False  # An unknown operator selects objects without the label.
    return True


def _begun(before: RolloutProgress | None, seen: ApplicationStatus, version: tuple[int, int]) -> RolloutProgress:
    if before is None:
        return RolloutProgress(WAITING, NOT_FOUND, seen.revision)
    by_drift = not versions.has(version, "rollouts heed revisions alone") and before.status == HEALTHY
    if before.revision != seen.revision or (by_drift and not seen.synced):
        return RolloutProgress(WAITING, CHANGED, seen.revision)
    return before


def _allowed(rollout: Rollout, progress: Mapping[Ref, RolloutProgress]) -> set[Ref]:
    current = current_step(rollout, progress)
    steps = rollout.steps if current is None else rollout.steps[:current]
    return {app for step in steps for app in step.apps}


def _limit(at_once: int | str | None, total: int) -> int:
    """A percentage is rounded down to at least one; only 0 and 0% allow none."""
    if at_once is None:
        return total
    if isinstance(at_once, int):
        return at_once
    percent = at_once.removesuffix("%")
    scaled = total * int(percent) // 100 if at_once.endswith("%") and percent.isdecimal() else 0
    return scaled if at_once == "0%" else max(scaled, 1)
