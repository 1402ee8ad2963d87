"""How Argo CD writes one object: apply, server-side apply, replace, create, delete.

Upstream: `applyObject` and `pruneObject` in gitops-engine/pkg/sync/sync_context.go, `resource_ops.go` in
gitops-engine/pkg/utils/kube, `cleanKubectlOutput` in kube.go beside it. Argo CD uses kubectl's own code for this.
"""

from __future__ import annotations

import re
from functools import partial

from msgspec import Struct

from seatrial.engines import script
from seatrial.engines.argocd import versions
from seatrial.engines.argocd.app import Asked, Settings
from seatrial.engines.argocd.migrating import owners_patch
from seatrial.engines.argocd.tasks import Task
from seatrial.engines.argocd.tracking import CRD
from seatrial.engines.kubectl import commands as kubectl
from seatrial.engines.script import Answer, Command, Part, Verb, Wait
from seatrial.helm.argocd_hooks import has_option, option
from seatrial.model.refusal import NO_FAILURE, Failure, Fault
from seatrial.model.resource import Body, Ref, dig, metadata, name_of, with_metadata

MANAGER = "argocd-controller"
RBAC = "rbac.authorization.k8s.io/v1"
FILE = "/dev/shm/0"
"""Argo CD passes manifests to kubectl in files with random names, which kubectl's errors contain."""
DONE: dict[Verb, str] = {"create": "created"}
REJECTED = (409, 422)
"""Conflict and Invalid: errors for which `--force` recreates the object."""
about = partial(script.about, manager=MANAGER)
_MAPS = re.compile(r"map\[.*\]")


class Done(Struct, frozen=True):
    """The result: an object's message, and whether it was rejected."""

    message: str
    refused: bool = False
    failure: Failure = NO_FAILURE


def apply(task: Task, asked: Asked, settings: Settings) -> Part[Done]:
    """Apply the target of a task."""
    target = _sent(task)
    live_counts = versions.has(settings.version, "options of the live object")
    consulted = (task.target, task.live if live_counts else None)
    replaces = "Replace=true" in asked.options or any(has_option(body, "Replace=true") for body in consulted)
    forced = versions.has(settings.version, "Force as annotation")
    force = asked.force or (forced and any(has_option(body, "Force=true") for body in consulted))
    if replaces:
        done = yield from _replace(task, target, force=force)
    elif _is_server_side(task, asked):
        if not force:
            owners = owners_patch(task.live, MANAGER, asked, settings)
            if owners is not None:
                yield about(task, "merge", owners)
        done = yield from _server_side(task, target, force=force)
    else:
        done = yield from _client_side(task, target, force=force)
    if task.ref.kind == CRD and not done.refused:
        yield Wait((task.ref,))  # Until it is Established, for up to 3 seconds; in vain it only says so in its log.
    return done


def dry_run(task: Task) -> Done:
    """The client-side dry run of an object that Argo CD has already read, which finds almost nothing."""
    if name_of(task.body):
        return Done("")
    begins = metadata(task.body).get("generateName", "")
    return Done(f"from {begins}: cannot use generate name with apply", refused=True)


def prune(task: Task, asked: Asked, settings: Settings) -> Part[Done | None]:
    """Prune an object; None if pruning is off."""
    live = task.live
    assert live is not None
    said = prune_option(task, asked, settings)
    if not asked.prune or said == "false":
        return None
    if metadata(live).get("deletionTimestamp"):
        return Done("pruned")
    answer = yield delete(task, asked)
    if answer.message and answer.code != 404:
        return Done(answer.message, refused=True, failure=answer.failure)
    return Done("pruned")


def prune_option(task: Task, asked: Asked, settings: Settings) -> str | None:
    """`Prune=` of the live object, else of the Application."""
    own = option(task.live, "Prune")
    if own is not None or not versions.has(settings.version, "Prune option of the app"):
        return own
    return next((word.partition("=")[2] for word in asked.options if word.startswith("Prune=")), None)


def delete(task: Task, asked: Asked) -> Command:
    """The request that deletes the live object of a task."""
    live = task.live if task.live is not None else task.body
    return deletion(live, task.ref, propagation(asked))


def deletion(live: Body, ref: Ref, policy: str) -> Command:
    return Command("delete", str(live["apiVersion"]), ref.kind, ref.namespace, ref.name, propagation=policy)


def propagation(asked: Asked) -> str:
    for word in ("background", "foreground", "orphan"):
        if f"PrunePropagationPolicy={word}" in asked.options:
            return word.capitalize()
    return "Foreground"


def _sent(task: Task) -> Body:
    """The target as sent to the API: without a namespace if it is cluster-scoped."""
    assert task.target is not None
    meta = dict(metadata(task.target))
    if task.ref.namespace:
        meta["namespace"] = task.ref.namespace
    else:
        meta.pop("namespace", None)
    return {**task.target, "metadata": meta}


def _is_server_side(task: Task, asked: Asked) -> bool:
    if has_option(task.target, "ServerSideApply=false"):
        return False
    return "ServerSideApply=true" in asked.options or has_option(task.target, "ServerSideApply=true")


def _replace(task: Task, target: Body, *, force: bool) -> Part[Done]:
    if task.live is None:
        answer = yield about(task, "create", target)
        return _told(task, "create", answer)
    version = {"resourceVersion": metadata(task.live).get("resourceVersion")}
    update = with_metadata(target, **version)
    # Making these anew would take everything of the kind, or in the namespace, with them.
    if task.ref.kind in (CRD, "Namespace"):
        answer = yield about(task, "update", update)
        if answer.message:
            return Done(f"error when updating: {answer.message}", refused=True, failure=answer.failure)
        return Done(f"{task.ref.kind}/{task.ref.name} updated")
    if not force:
        answer = yield about(task, "update", update)
        if answer.message:
            words = f'error when replacing "{FILE}": {answer.message}'
            return Done(_clean(words), refused=True, failure=answer.failure)
        return Done(_named(task, "replaced"))
    return (yield from _made_anew(task, target, "Background"))


def _server_side(task: Task, target: Body, *, force: bool) -> Part[Done]:
    if force:
        return Done("error validating options: --force cannot be used with --server-side", refused=True)
    answer = yield about(task, "apply", target, force=True)
    if answer.message or not answer.served:
        return Done(_clean(_complaint(task, answer)), refused=True, failure=answer.failure)
    return Done(_named(task, "serverside-applied"))


def _client_side(task: Task, target: Body, *, force: bool) -> Part[Done]:
    refused = (yield from _reconciled(task, target)) if task.body.get("apiVersion") == RBAC else None
    if refused is not None:
        return refused
    verb, answer = yield from kubectl.applied(target, task.ref.namespace, MANAGER)
    if force and verb not in ("create", "get") and answer.code in REJECTED:
        return (yield from _made_anew(task, target, "Background"))
    return _told(task, verb, answer)


def _reconciled(task: Task, target: Body) -> Part[Done | None]:
    """`kubectl auth reconcile`: a binding to another role is recreated, which apply cannot do."""
    if task.ref.namespace:
        home = yield Command("get", "v1", "Namespace", name=task.ref.namespace)
        if home.message:
            words = f"error getting namespace {task.ref.namespace}: {home.message}"
            missing = Fault("not-found", Ref("Namespace", "", task.ref.namespace))
            failure = Failure(faults=(missing,))
            return Done(f"error running kubectl auth reconcile: {words}", refused=True, failure=failure)
    roles = dig(task.live, "roleRef"), target.get("roleRef")
    if task.live is not None and None not in roles and roles[0] != roles[1]:
        yield about(task, "delete")
    return None


def _made_anew(task: Task, target: Body, policy: str) -> Part[Done]:
    """Delete, wait until it is gone, and create."""
    assert task.live is not None
    yield deletion(task.live, task.ref, policy)
    yield Wait((task.ref,))
    left = yield about(task, "get")
    if left.code == 200:
        return Done(f'error when deleting "{FILE}": timed out waiting for the condition', refused=True)
    answer = yield about(task, "create", target)
    return _told(task, "create", answer)


def _told(task: Task, verb: Verb, answer: Answer) -> Done:
    if answer.message or not answer.served:
        words = _complaint(task, answer)
        patched = verb not in ("create", "get") and answer.served
        words = f'error when patching "{FILE}": {words}' if patched else words
        return Done(_clean(words), refused=True, failure=answer.failure)
    return Done(_named(task, DONE.get(verb, "configured")))


def _complaint(task: Task, answer: Answer) -> str:
    if answer.served:
        return answer.message
    api_version = task.body.get("apiVersion")
    return (
        f'resource mapping not found for name: "{task.ref.name}" namespace: "{task.ref.namespace}" from "{FILE}": no '
        f'matches for kind "{task.ref.kind}" in version "{api_version}"\nensure CRDs are installed first'
    )


def _named(task: Task, done: str) -> str:
    kind = task.ref.kind.lower()
    return f"{kind}.{task.ref.group}/{task.ref.name} {done}" if task.ref.group else f"{kind}/{task.ref.name} {done}"


def _clean(words: str) -> str:
    """Argo CD removes what looks like a Go map from kubectl's errors, up to the last bracket of the line."""
    return _MAPS.sub("", words.strip())
