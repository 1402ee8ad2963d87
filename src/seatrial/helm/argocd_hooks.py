"""How Argo CD reads its own annotations and Helm's: what is a hook, in which phase and wave, and when it is deleted.

From `gitops-engine/pkg/sync/{hook,syncwaves,resource}` and `controller/hook.go` of Argo CD 3.5. Pure facts, about one
object at a time: Argo CD knows no rule by which one object's annotations decide about another's.
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
"""In the order in which they run; the last only where something failed."""
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
"""What Helm's events become. All others become nothing: the object is a hook without a phase, and never applied."""
POLICIES_FROM_HELM = {
    hooks.BEFORE_CREATION: BEFORE_CREATION,
    hooks.SUCCEEDED: SUCCEEDED,
    hooks.FAILED: FAILED,
}
ON_DELETION = {"PreDelete": "pre-delete", "PostDelete": "post-delete"}
"""Hooks of an Application's deletion, and Helm's words for them. They are no phases of a sync."""


def read_annotations(body: Body) -> dict[str, str]:
    """What Argo CD can read of them: nothing at all where one value is no text, such as a wave without quotes."""
    found = metadata(body).get("annotations")
    if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
        return {}
    return found


def types_of(body: Body) -> tuple[str, ...]:
    """The phases that an object names, and `Skip`; Argo CD's own where one of them is known, else Helm's."""
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
    """Whether an object is a hook that no phase runs: it is neither applied nor pruned, and nobody says so."""
    return is_hook(body) and not types_of(body)


def phases_of(body: Body) -> tuple[str, ...]:
    """The phases that run an object; of a plain one, `Sync`."""
    if is_skipped(body):
        return ()
    if not is_hook(body):
        return ("Sync",)
    return tuple(word for word in types_of(body) if word != SKIP)


def wave_of(body: Body) -> int:
    """The wave of any object, hook or not: Argo CD's annotation, else Helm's weight, each only if it is a number."""
    read = read_annotations(body)
    texts = (read.get(WAVE, ""), read.get(hooks.WEIGHT, ""))
    return next((int(text) for text in texts if hooks.is_number(text)), 0)


def delete_policies(body: Body) -> tuple[str, ...]:
    """When a hook is deleted: what both annotations say together, and where they say nothing, before it is made."""
    own = (word for word in _listed(body, DELETE_POLICY) if word in POLICIES_FROM_HELM.values())
    helms = (POLICIES_FROM_HELM[w] for w in _listed(body, hooks.DELETE_POLICY) if w in POLICIES_FROM_HELM)
    return (*own, *helms) or (BEFORE_CREATION,)


def runs_on_deletion(body: Body, kind: str, *, whole_value: bool = False) -> bool:
    """Whether the deletion of the Application runs this object; before 3.4 the annotation had to say nothing else."""
    read = read_annotations(body)
    for key, word in ((HOOK, kind), (hooks.HOOK, ON_DELETION[kind])):
        words = [read.get(key, "")] if whole_value else _listed(body, key)
        if word in words:
            return True
    return False


def has_option(body: Body | None, option: str) -> bool:
    """Whether an object's sync options hold this one, as `Replace=true`."""
    return body is not None and option in _listed(body, SYNC_OPTIONS)


def ignores_extraneous(body: Body) -> bool:
    """Whether an object that is no longer wanted makes its Application OutOfSync; pruned it is all the same."""
    return "IgnoreExtraneous" in _listed(body, COMPARE_OPTIONS)


def option(body: Body | None, name: str) -> str | None:
    """The value that an object's sync options give to this one."""
    words = _listed(body, SYNC_OPTIONS) if body is not None else ()
    return next((word.partition("=")[2] for word in words if word.startswith(f"{name}=")), None)


def _listed(body: Body, key: str) -> tuple[str, ...]:
    words = (word.strip() for word in read_annotations(body).get(key, "").split(","))
    return tuple(dict.fromkeys(word for word in words if word))
