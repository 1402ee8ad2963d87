"""Whether a sync may start: every object must be permitted and its kind served, unless the sync creates its CRD.

Upstream: the second half of `getSyncTasks` in gitops-engine/pkg/sync/sync_context.go. This happens before the dry run
and before the first wave, so waves cannot help a custom resource whose definition comes from elsewhere.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from seatrial.engines.argocd import versions
from seatrial.engines.argocd.app import App, Settings, SyncOptions
from seatrial.engines.argocd.projects import refusal
from seatrial.engines.argocd.tasks import ArgocdTask, defined_kind
from seatrial.engines.script import Answer, Command, DescribedObject, Part
from seatrial.helm.argocd_hooks import has_option
from seatrial.model.refusal import NO_FAILURE, Failure, Fault, GroupVersionKind
from seatrial.model.resource import group_of, version_of

SKIP = "SkipDryRunOnMissingResource=true"


class ValidatedTasks(Struct, frozen=True):
    task: ArgocdTask
    refusal: str = ""
    failure: Failure = NO_FAILURE
    installed: str = ""
    """For a kind that is not served: the apiVersion in which it is, in this group or another."""


def checked(
    app: App, tasks: list[ArgocdTask], targets: list[DescribedObject], asked: SyncOptions, settings: Settings
) -> Part[list[ValidatedTasks]]:
    """Every task, with the reason if it may not run: its project, or an unserved kind."""
    brought = {key for target in targets if (key := defined_kind(target.body))}
    forgiving = SKIP in asked.options and versions.has(settings.version, "SkipDryRunOnMissingResource of the app")
    answers: dict[tuple[str, str], Answer] = {}
    found = []
    for task in tasks:
        kind = str(task.body["apiVersion"]), task.ref.kind
        if kind not in answers:
            answers[kind] = yield Command("discover", *kind)
        answer = answers[kind]
        if answer.code == 200:
            found.append(ValidatedTasks(task, _not_permitted(task, app)))
        elif answer.code == 404 and (forgiving or has_option(task.target, SKIP) or _key(task) in brought):
            found.append(ValidatedTasks(replace(task, skip_dry_run=True)))
        else:
            failure = Failure(faults=(_unserved(task),)) if answer.code == 404 else answer.failure
            installed = str(answer.body.get("apiVersion") or "")
            found.append(ValidatedTasks(task, _words(task, answer), failure, installed))
    return found


def _not_permitted(task: ArgocdTask, app: App) -> str:
    if app.project is None:
        return ""
    return refusal(task.ref, task.ref.namespace, app.where, app.project)


def _unserved(task: ArgocdTask) -> Fault:
    api_version = str(task.body["apiVersion"])
    return Fault("unserved", task.ref, GroupVersionKind(group_of(api_version), version_of(api_version), task.ref.kind))


def _key(task: ArgocdTask) -> str:
    return f"{task.ref.group}/{task.ref.kind}"


def _words(task: ArgocdTask, answer: Answer) -> str:
    """The discovery error: an unknown group and version, or an unknown kind in it."""
    if answer.message:
        return f"failed to discover server resources for group version {task.body['apiVersion']}: {answer.message}"
    return f'{task.ref.kind}{"." if task.ref.group else ""}{task.ref.group} "" not found'
