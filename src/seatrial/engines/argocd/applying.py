"""How Argo CD writes one object: apply, server-side apply, replace, create, delete.

Upstream: `applyObject` and `pruneObject` in gitops-engine/pkg/sync/sync_context.go, `resource_ops.go` in
gitops-engine/pkg/utils/kube, `cleanKubectlOutput` in kube.go beside it. Argo CD uses kubectl's own code for this.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from msgspec import Struct

from seatrial.engines import script
from seatrial.engines.argocd import rbac, versions
from seatrial.engines.argocd.app import PROGRAM, Settings, SyncOptions
from seatrial.engines.argocd.migrating import owners_of_client_side_apply, owners_of_kubectl
from seatrial.engines.argocd.tasks import ArgocdTask
from seatrial.engines.argocd.tracking import CRD
from seatrial.engines.fieldowners import LAST_APPLIED
from seatrial.engines.kubectl import commands as kubectl
from seatrial.engines.script import Answer, Command, Part, Verb, Wait
from seatrial.helm.argocd_hooks import FINALIZER, has_option, option
from seatrial.kinds.core import conditions
from seatrial.model import lazy_re
from seatrial.model.refusal import NO_FAILURE, Failure
from seatrial.model.resource import Body, Ref, annotations_of, metadata, name_of, version_of, with_metadata

MANAGER = "argocd-controller"
FILE = "/dev/shm/0"
"""Argo CD passes manifests to kubectl in files with random names, which kubectl's errors contain."""
DONE: dict[Verb, str] = {"create": "created", "get": "unchanged"}
WITHOUT_ANNOTATION = (
    f"Warning: resource {{}} is missing the {LAST_APPLIED} annotation which is required by  apply.  apply should only "
    "be used on resources created declaratively by either  create --save-config or  apply. The missing annotation will "
    "be patched automatically."
)
"""As kubectl prints it where it does not know the name of its own command."""
UPDATED_IN_PLACE = (CRD, "Namespace")
"""Kinds that `Replace=true` never recreates: everything of the kind, or in the namespace, would go with them."""
REJECTED = (409, 422)
"""Conflict and Invalid: errors for which `--force` recreates the object."""
about = partial(script.about, manager=MANAGER)
_MAPS = lazy_re.compile(r"map\[.*\]")


class AppliedObject(Struct, frozen=True):
    """The result: an object's message, and whether it was rejected."""

    message: str
    refused: bool = False
    failure: Failure = NO_FAILURE


def apply(task: ArgocdTask, asked: SyncOptions, settings: Settings) -> Part[AppliedObject]:
    """Apply the target of a task."""
    target = _sent(task)
    replaces = _replaces(task, asked, settings)
    forced = versions.has(settings.version, "Force as annotation")
    force = asked.force or (forced and _is_marked(task, "Force=true", settings))
    server_side = _is_server_side(task, asked)
    if server_side and owners_of_kubectl(task.live, MANAGER, asked, settings) is not None:
        yield from _moved(task, lambda live: owners_of_kubectl(live, MANAGER, asked, settings))
    if replaces:
        done = yield from _replace(task, target, force=force)
    elif server_side:
        done = yield from _server_side(task, target, settings, force=force)
    else:
        done = yield from _client_side(task, target, force=force)
    if task.ref.kind == CRD and not done.refused:
        yield from _established(task)
    return done


def _established(task: ArgocdTask) -> Part[None]:
    """Wait for up to 3 seconds until a CRD is Established. After that Argo CD only logs a warning."""
    live = yield about(task, "get")
    if not conditions.is_true(live.body or {}, "Established"):
        yield Wait((task.ref,))


def dry_run(task: ArgocdTask, asked: SyncOptions, settings: Settings) -> Part[AppliedObject]:
    """The client-side dry run, which finds almost nothing; what is updated in place is sent to the API server."""
    if not name_of(task.body):
        return (yield from _unnamed(task))
    if task.live is not None and task.ref.kind in UPDATED_IN_PLACE and _replaces(task, asked, settings):
        answer = yield about(task, "update", _as_update(task, _sent(task)), dry_run=True)
        if answer.message:
            return AppliedObject(answer.message, refused=True, failure=answer.failure)
    return AppliedObject("")


def _unnamed(task: ArgocdTask) -> Part[AppliedObject]:
    begins = metadata(task.body).get("generateName")
    if begins:
        return AppliedObject(f"from {begins}: cannot use generate name with apply", refused=True)
    api_version = str(task.body["apiVersion"])
    found = yield about(task, "discover")
    group_version = f"{task.ref.group}/{version_of(api_version)}"
    words = (
        "error when retrieving current configuration of:\n"
        f'Resource: "{group_version}, Resource={found.body.get("plural")}", '
        f'GroupVersionKind: "{group_version}, Kind={task.ref.kind}"\n'
        f'Name: "", Namespace: "{task.ref.namespace}"\nfrom server for: "{FILE}": resource name may not be empty'
    )
    return AppliedObject(words, refused=True)


def prune(task: ArgocdTask, asked: SyncOptions, settings: Settings) -> Part[AppliedObject | None]:
    """Prune an object; None if pruning is off."""
    live = task.live
    assert live is not None
    said = prune_option(task, asked, settings)
    if not asked.prune or said == "false":
        return None
    if metadata(live).get("deletionTimestamp"):
        return AppliedObject("pruned")
    answer = yield delete(task, asked)
    if answer.message and answer.code != 404:
        return AppliedObject(answer.message, refused=True, failure=answer.failure)
    return AppliedObject("pruned")


def prune_option(task: ArgocdTask, asked: SyncOptions, settings: Settings) -> str | None:
    """`Prune=` of the live object, else of the Application."""
    own = option(task.live, "Prune")
    if own is not None or not versions.has(settings.version, "Prune option of the app"):
        return own
    return next((word.partition("=")[2] for word in asked.options if word.startswith("Prune=")), None)


def without_finalizer(task: ArgocdTask) -> Part[None]:
    """Remove Argo CD's finalizer from a hook. An update of the whole object, repeated if that was not the newest."""
    if task.live is None or FINALIZER not in (metadata(task.live).get("finalizers") or ()):
        return
    live = yield about(task, "get")
    finalizers = metadata(live.body).get("finalizers") or () if live.code == 200 else ()
    if FINALIZER in finalizers:
        left = [word for word in finalizers if word != FINALIZER]
        yield about(task, "update", with_metadata(live.body, finalizers=left or None))


def delete(task: ArgocdTask, asked: SyncOptions) -> Command:
    """The request that deletes the live object of a task."""
    live = task.live if task.live is not None else task.body
    return deletion(live, task.ref, propagation(asked))


def deletion(live: Body, ref: Ref, policy: str) -> Command:
    return Command("delete", str(live["apiVersion"]), ref.kind, ref.namespace, ref.name, propagation=policy)


def propagation(asked: SyncOptions) -> str:
    for word in ("background", "foreground", "orphan"):
        if f"PrunePropagationPolicy={word}" in asked.options:
            return word.capitalize()
    return "Foreground"


def _sent(task: ArgocdTask) -> Body:
    """The target as sent to the API: without a namespace if it is cluster-scoped."""
    assert task.target is not None
    meta = dict(metadata(task.target))
    if task.ref.namespace:
        meta["namespace"] = task.ref.namespace
    else:
        meta.pop("namespace", None)
    return {**task.target, "metadata": meta}


def _is_server_side(task: ArgocdTask, asked: SyncOptions) -> bool:
    if has_option(task.target, "ServerSideApply=false"):
        return False
    return "ServerSideApply=true" in asked.options or has_option(task.target, "ServerSideApply=true")


def _replaces(task: ArgocdTask, asked: SyncOptions, settings: Settings) -> bool:
    return "Replace=true" in asked.options or _is_marked(task, "Replace=true", settings)


def _is_marked(task: ArgocdTask, option: str, settings: Settings) -> bool:
    live_counts = versions.has(settings.version, "options of the live object")
    return any(has_option(body, option) for body in (task.target, task.live if live_counts else None))


def _as_update(task: ArgocdTask, target: Body) -> Body:
    assert task.live is not None
    return with_metadata(target, resourceVersion=metadata(task.live).get("resourceVersion"))


def _replace(task: ArgocdTask, target: Body, *, force: bool) -> Part[AppliedObject]:
    if task.live is None:
        answer = yield about(task, "create", target, manager=PROGRAM)
        return _outcome(task, "create", answer)
    update = _as_update(task, target)
    if task.ref.kind in UPDATED_IN_PLACE:
        answer = yield about(task, "update", update, manager=PROGRAM)
        if answer.message:
            return AppliedObject(answer.message, refused=True, failure=answer.failure)
        return AppliedObject(f"{task.ref.kind}/{task.ref.name} updated")
    if not force:
        answer = yield about(task, "update", update, manager=PROGRAM)
        if answer.message:
            words = f'error when replacing "{FILE}": {answer.message}'
            return AppliedObject(_clean(words), refused=True, failure=answer.failure)
        return AppliedObject(_named(task, "replaced"))
    return (yield from _recreated(task, target, "Background", PROGRAM))


def _server_side(task: ArgocdTask, target: Body, settings: Settings, *, force: bool) -> Part[AppliedObject]:
    if force:
        return AppliedObject("error validating options: --force cannot be used with --server-side", refused=True)
    answer = yield about(task, "apply", target, force=True)
    if not answer.message and owners_of_client_side_apply(answer.body, MANAGER, settings) is not None:
        yield from _moved(task, lambda live: owners_of_client_side_apply(live, MANAGER, settings))
        answer = yield about(task, "apply", target, force=True)
    if answer.message or not answer.served:
        return AppliedObject(_clean(_complaint(task, answer)), refused=True, failure=answer.failure)
    return AppliedObject(_named(task, "serverside-applied"))


def _moved(task: ArgocdTask, patch: Callable[[Body], Body | None]) -> Part[None]:
    """Give fields to Argo CD's own manager. It is tried again until it meets the newest version."""
    live = yield about(task, "get")
    owners = patch(live.body)
    if owners is not None:
        yield about(task, "merge", owners)


def _client_side(task: ArgocdTask, target: Body, *, force: bool) -> Part[AppliedObject]:
    if task.body.get("apiVersion") == rbac.API_VERSION:
        return (yield from _role_or_binding(task, target))
    verb, answer = yield from kubectl.applied(target, task.ref.namespace, MANAGER)
    if force and verb not in ("create", "get") and answer.code in REJECTED:
        return (yield from _recreated(task, target, "Background"))
    return _outcome(task, verb, answer)


def _role_or_binding(task: ArgocdTask, target: Body) -> Part[AppliedObject]:
    """Two writes: what `auth reconcile` has just created does not have the annotation of the last apply yet."""
    done = yield from rbac.reconcile(task, target)
    if done.refused:
        return AppliedObject(_clean(done.message), refused=True, failure=done.failure)
    live = yield about(task, "get")
    verb, answer = yield from kubectl.applied(target, task.ref.namespace, MANAGER)
    applied = _outcome(task, verb, answer)
    if applied.refused:
        return applied
    missing = live.code == 200 and LAST_APPLIED not in annotations_of(live.body)
    warning = f". {WITHOUT_ANNOTATION.format(f'{task.ref.kind.lower()}s/{task.ref.name}')}" if missing else ""
    return AppliedObject(f"{done.message}{applied.message}{warning}")


def _recreated(task: ArgocdTask, target: Body, policy: str, manager: str = MANAGER) -> Part[AppliedObject]:
    """Delete, wait until it is gone, and create."""
    assert task.live is not None
    yield deletion(task.live, task.ref, policy)
    left = yield about(task, "get")
    if left.code == 200:
        yield Wait((task.ref,))
        left = yield about(task, "get")
    if left.code == 200:
        return AppliedObject(f'error when deleting "{FILE}": timed out waiting for the condition', refused=True)
    answer = yield about(task, "create", target, manager=manager)
    return _outcome(task, "create", answer)


def _outcome(task: ArgocdTask, verb: Verb, answer: Answer) -> AppliedObject:
    if answer.message or not answer.served:
        words = _complaint(task, answer)
        patched = verb not in ("create", "get") and answer.served
        words = f'error when patching "{FILE}": {words}' if patched else words
        return AppliedObject(_clean(words), refused=True, failure=answer.failure)
    return AppliedObject(_named(task, DONE.get(verb, "configured")))


def _complaint(task: ArgocdTask, answer: Answer) -> str:
    if answer.served:
        return answer.message
    api_version = task.body.get("apiVersion")
    return (
        f'resource mapping not found for name: "{task.ref.name}" namespace: "{task.ref.namespace}" from "{FILE}": no '
        f'matches for kind "{task.ref.kind}" in version "{api_version}"\nensure CRDs are installed first'
    )


def _named(task: ArgocdTask, done: str) -> str:
    kind = task.ref.kind.lower()
    return f"{kind}.{task.ref.group}/{task.ref.name} {done}" if task.ref.group else f"{kind}/{task.ref.name} {done}"


def _clean(words: str) -> str:
    """Argo CD removes what looks like a Go map from kubectl's errors, up to the last bracket of the line."""
    return _MAPS.sub("", words.strip())
