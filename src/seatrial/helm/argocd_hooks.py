"""How Argo CD reads its own annotations and Helm's: which objects are hooks, their phase and wave, their delete policy.

From `gitops-engine/pkg/sync/{hook,syncwaves,resource}` and `controller/hook.go` of Argo CD 3.5. Facts about one object
at a time: in Argo CD the annotations of one object never affect another.
"""

from __future__ import annotations

from seatrial.helm import hooks
from seatrial.model.resource import Body, metadata

HOOK = "argocd.argoproj.io/hook"
WAVE = "argocd.argoproj.io/sync-wave"
DELETE_POLICY = "argocd.argoproj.io/hook-delete-policy"
SYNC_OPTIONS = "argocd.argoproj.io/sync-options"
COMPARE_OPTIONS = "argocd.argoproj.io/compare-options"
FINALIZER = "argocd.argoproj.io/hook-finalizer"
TRACKING_ID = "argocd.argoproj.io/tracking-id"

PHASES = ("PreSync", "Sync", "PostSync", "SyncFail")
"""In the order in which they run. SyncFail runs only after a failure."""
SKIP = "Skip"
CRD_INSTALL = "crd-install"

BEFORE_CREATION = "BeforeHookCreation"
SUCCEEDED = "HookSucceeded"
FAILED = "HookFailed"

FROM_HELM = {
    "pre-install": "PreSync",
    "pre-upgrade": "PreSync",
    "post-install": "PostSync",
    "post-upgrade": "PostSync",
}
"""Argo CD's phase for each Helm event. Other events have no phase: the object is a hook that is never applied."""
POLICIES_FROM_HELM = {
    hooks.BEFORE_CREATION: BEFORE_CREATION,
    hooks.SUCCEEDED: SUCCEEDED,
    hooks.FAILED: FAILED,
}
ON_DELETION = {"PreDelete": "pre-delete", "PostDelete": "post-delete"}
"""Hooks that run when an Application is deleted, and their names in Helm. They are not sync phases."""


def read_annotations(body: Body) -> dict[str, str]:
    """The annotations that Argo CD can read. None at all if one value is not a string, such as an unquoted wave."""
    found = metadata(body).get("annotations")
    if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
        return {}
    return found


def types_of(body: Body) -> tuple[str, ...]:
    """The phases an object names, and `Skip`. Argo CD's annotation if it contains a known phase, otherwise Helm's."""
    own = tuple(word for word in _listed(body, HOOK) if word in (*PHASES, SKIP))
    helms = (FROM_HELM[word] for word in _listed(body, hooks.HOOK) if word in FROM_HELM)
    return own or tuple(dict.fromkeys(helms))


def is_skipped(body: Body) -> bool:
    return types_of(body) == (SKIP,)


def is_hook(body: Body) -> bool:
    read = read_annotations(body)
    if HOOK in read:
        return not is_skipped(body)
    return hooks.HOOK in read and read[hooks.HOOK] != CRD_INSTALL


def is_ignored(body: Body) -> bool:
    """Whether the object is a hook without a phase: it is neither applied nor pruned, and Argo CD reports nothing."""
    return is_hook(body) and not types_of(body)


def phases_of(body: Body) -> tuple[str, ...]:
    """The phases in which an object is applied; `Sync` for an object that is not a hook."""
    if is_skipped(body):
        return ()
    if not is_hook(body):
        return ("Sync",)
    return tuple(word for word in types_of(body) if word != SKIP)


def wave_of(body: Body) -> int:
    """The wave of any object, hook or not: Argo CD's annotation, otherwise Helm's weight, if it is a number."""
    read = read_annotations(body)
    texts = (read.get(WAVE, ""), read.get(hooks.WEIGHT, ""))
    return next((int(text) for text in texts if hooks.is_number(text)), 0)


def delete_policies(body: Body) -> tuple[str, ...]:
    """When a hook is deleted: the values of both annotations together; the default is BeforeHookCreation."""
    own = (word for word in _listed(body, DELETE_POLICY) if word in POLICIES_FROM_HELM.values())
    helms = (POLICIES_FROM_HELM[w] for w in _listed(body, hooks.DELETE_POLICY) if w in POLICIES_FROM_HELM)
    return (*own, *helms) or (BEFORE_CREATION,)


def runs_on_deletion(body: Body, kind: str, *, whole_value: bool = False) -> bool:
    """Whether deleting the Application runs this object. Before 3.4 the annotation had to name this event only."""
    read = read_annotations(body)
    for key, word in ((HOOK, kind), (hooks.HOOK, ON_DELETION[kind])):
        values = [read.get(key, "")] if whole_value else _listed(body, key)
        if word in values:
            return True
    return False


def has_option(body: Body | None, option: str) -> bool:
    """Whether the object's sync options contain this one, as `Replace=true`."""
    return body is not None and option in _listed(body, SYNC_OPTIONS)


def ignores_extraneous(body: Body) -> bool:
    """Whether the object, when no longer desired, leaves the Application Synced. It is pruned nevertheless."""
    return "IgnoreExtraneous" in _listed(body, COMPARE_OPTIONS)


def option(body: Body | None, name: str) -> str | None:
    """The value of this sync option on the object."""
    values = _listed(body, SYNC_OPTIONS) if body is not None else ()
    return next((word.partition("=")[2] for word in values if word.startswith(f"{name}=")), None)


def _listed(body: Body, key: str) -> tuple[str, ...]:
    values = (word.strip() for word in read_annotations(body).get(key, "").split(","))
    return tuple(dict.fromkeys(word for word in values if word))
