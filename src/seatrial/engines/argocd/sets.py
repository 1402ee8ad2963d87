"""The ApplicationSet controller: it writes Applications, and the progress of a RollingSync.

Upstream: `applicationset/controllers/applicationset_controller.go` and `applicationset/progressivesync` of Argo CD 3.5.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from seatrial.engines import Stuck
from seatrial.engines.argocd import versions
from seatrial.engines.argocd.app import API_VERSION, Settings
from seatrial.engines.argocd.reconciling import Tried
from seatrial.engines.argocd.rollout import COMPLETED, ApplicationStatus, Rollout, RolloutProgress, current_step, judged
from seatrial.engines.script import Command, Part, Say
from seatrial.model.resource import Body, Ref, dig, metadata, ref_of
from seatrial.model.timeline import Operation
from seatrial.readiness.argocd.verdict import HEALTHY

UP_TO_DATE = "All applications have been generated successfully"


class AppSet(Struct, frozen=True):
    """An ApplicationSet and its Applications."""

    ref: Ref
    applications: tuple[Body, ...]
    rollout: Rollout | None = None
    updates: bool = True
    deletes: bool = True
    """Whether `applicationsSync` allows it to change existing Applications and delete dropped ones."""


def write(application: Body, made: AppSet, settings: Settings) -> Part[None]:
    """Create an Application, or change its spec."""
    ref = ref_of(application)
    wanted = _without_automation(application, settings) if made.rollout is not None else application
    there = yield Command("get", API_VERSION, "Application", ref.namespace, ref.name)
    if there.code == 404:
        owned = {**metadata(wanted), "ownerReferences": (yield from _owner(made))}
        created = {**wanted, "metadata": {key: value for key, value in owned.items() if value}}
        yield Command("create", API_VERSION, "Application", ref.namespace, ref.name, created)
    elif there.code == 200 and made.updates and there.body.get("spec") != wanted["spec"]:
        changed = {**there.body, "spec": wanted["spec"]}
        yield Command("update", API_VERSION, "Application", ref.namespace, ref.name, changed)


def dropped(made: AppSet, before: AppSet | None) -> Iterator[Ref]:
    """The Applications that a set no longer generates, if it may delete them."""
    if before is None or not made.deletes:
        return
    now = {ref_of(body) for body in made.applications}
    yield from (ref for body in before.applications if (ref := ref_of(body)) not in now)


def judge(
    rollout: Rollout, app: Ref, seen: ApplicationStatus, progress: dict[Ref, RolloutProgress], settings: Settings
) -> Part[None]:
    """Record the progress of an Application."""
    before = progress.get(app)
    now = judged(before, seen, settings.version)
    if before is None or now.status != before.status:
        yield from note(rollout, app, now, progress)
    progress[app] = now


def note(rollout: Rollout, app: Ref, now: RolloutProgress, progress: dict[Ref, RolloutProgress]) -> Part[None]:
    progress[app] = now
    if rollout.step_of(app) > 0:
        yield Say(rollout.ref, f"step {rollout.step_of(app)}, {app.name}: {now.status}: {now.message}")


def name_unselected(rollout: Rollout) -> Part[None]:
    for app in rollout.apps:
        if rollout.step_of(app) < 0:
            yield Say(app, f"is in no step of {rollout.ref}, and never syncs by itself")


def tell(made: AppSet, progress: Mapping[Ref, RolloutProgress] | None) -> Part[None]:
    """Write the status of a set, as health checks read it."""
    conditions = [_condition("ResourcesUpToDate", "True", UP_TO_DATE)]
    status: Body = {"conditions": conditions}
    if made.rollout is not None and progress is not None:
        step = current_step(made.rollout, progress)
        words = COMPLETED if step is None else _performing(step)
        conditions.append(_condition("RolloutProgressing", "False" if step is None else "True", words))
        status["applicationStatus"] = [_entry(made.rollout, app, progress[app]) for app in made.rollout.apps]
    yield from write_status(made.ref, status)


def write_status(ref: Ref, status: Body) -> Part[None]:
    """Update the status of an Argo CD object, if it exists and differs."""
    there = yield Command("get", API_VERSION, ref.kind, ref.namespace, ref.name)
    if there.code == 200 and there.body.get("status") != status:
        command = Command("merge", API_VERSION, ref.kind, ref.namespace, ref.name, {"status": status})
        answer = yield replace(command, subresource="status")
        if answer.code == 404:
            yield command  # The definition that Argo CD brings has no status of its own.


def halted(rollout: Rollout, progress: Mapping[Ref, RolloutProgress], stuck: Stuck | None) -> Tried:
    """A rollout that stopped; `stuck` if it waits for health, not for a failed Application."""
    step = current_step(rollout, progress)
    assert step is not None
    waiting = [ref.name for later in rollout.steps[step:] for ref in later.apps if progress[ref].status != HEALTHY]
    held = [ref.name for ref in rollout.steps[step - 1].apps if progress[ref].status == "Waiting"]
    never = [*held, *waiting]
    words = _performing(step)
    if never:
        words = f"{words}; {', '.join(never)} never sync{'s' if len(never) == 1 else ''}"
    if stuck is not None and held and rollout.steps[step - 1].at_once in (0, "0%"):
        stuck = Stuck(f"maxUpdate of step {step} is 0, so it waits for a manual sync", stuck.waits_for, ())
    return Tried(Operation(rollout.ref.name, "Running", words, automated=True), stuck)


def _performing(step: int) -> str:
    return f"ApplicationSet is performing rollout of step {step}"


def _without_automation(application: Body, settings: Settings) -> Body:
    """The controller starts all syncs itself, so automated sync and self-heal are off."""
    policy = dig(application, "spec", "syncPolicy") or {}
    automated = policy.get("automated")
    if automated is None:
        return application
    if versions.has(settings.version, "rollouts heed revisions alone"):
        policy = {**policy, "automated": {**automated, "enabled": False}}
    else:
        policy = {key: value for key, value in policy.items() if key != "automated"}
    return {**application, "spec": {**application["spec"], "syncPolicy": policy}}


def _owner(made: AppSet) -> Part[list[Body]]:
    """The set, if it is in the cluster: deleting it deletes what it owns."""
    there = yield Command("get", API_VERSION, "ApplicationSet", made.ref.namespace, made.ref.name)
    if there.code != 200:
        return []
    about = {"name": made.ref.name, "uid": metadata(there.body).get("uid")}
    kind = {"apiVersion": API_VERSION, "kind": "ApplicationSet"}
    return [{**kind, **about, "controller": True, "blockOwnerDeletion": True}]


def _condition(kind: str, status: str, message: str) -> Body:
    return {"type": kind, "status": status, "message": message}


def _entry(rollout: Rollout, app: Ref, now: RolloutProgress) -> Body:
    step = str(rollout.step_of(app))
    return {"application": app.name, "status": now.status, "message": now.message, "step": step}
