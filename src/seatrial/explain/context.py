"""What a text says beside its error: which engine printed it, at which step, in which hook. Decides no cause."""

from __future__ import annotations

from msgspec import Struct

HOOK_EVENTS = tuple(
    f"{when}-{step}" for when in ("pre", "post") for step in ("install", "upgrade", "rollback", "delete")
)
STEPS = ("install", "upgrade", "rollback", "uninstall")
STEP_OF = {"delete": "uninstall"}
SYNC_HOOKS = {"presync": "pre-sync", "postsync": "post-sync", "syncfail": "sync-fail"}


class ErrorContext(Struct, frozen=True):
    engine: str = ""
    step: str = ""
    hook: str = ""


# What tools print around an error: the sign, the engine and the step it shows. The first sign of each column counts.
SIGNS = (
    ("helm install failed", "flux", "install"),
    ("helm upgrade failed", "flux", "upgrade"),
    ("helm uninstall failed", "flux", "uninstall"),
    ("installation failed", "helm", "install"),
    ("upgrade failed", "helm", "upgrade"),
    ("rollback failed", "helm", "rollback"),
    ("error: uninstall", "helm", "uninstall"),
    ("uninstallation completed with", "helm", "uninstall"),
    ("create: failed to create:", "helm", "install"),
    ("helm rollback", "", "rollback"),
    ("install retries exhausted", "flux", "install"),
    ("upgrade retries exhausted", "flux", "upgrade"),
    ("helmrelease", "flux", ""),
    ("helm-controller", "flux", ""),
    ("kustomize-controller", "flux", ""),
    ("kustomization/", "flux", ""),
    ("flux-system", "flux", ""),
    ("dry-run failed", "flux", ""),
    ("one or more synchronization tasks", "argocd", ""),
    ("one or more objects failed to apply", "argocd", ""),
    ("the kubernetes api could not find", "argocd", ""),
    ("argocd", "argocd", ""),
    ("argo cd", "argocd", ""),
    ("argoproj.io", "argocd", ""),
    ("waiting for healthy state of", "argocd", ""),
    ("waiting for completion of hook", "argocd", ""),
    ("presync", "argocd", ""),
    ("postsync", "argocd", ""),
    ("comparisonerror", "argocd", ""),
    ("outofsync", "argocd", ""),
    ("syncerror", "argocd", ""),
    ("pulumi", "pulumi", ""),
    ("by the kubernetes api server", "pulumi", ""),
    ("reported that the apiversion for this resource", "pulumi", ""),
    ("creation failed: no matches", "pulumi", ""),
    ("finding pods to direct traffic to", "pulumi", ""),
    ("kubernetes:core/v1:", "pulumi", ""),
    ("kubernetes:apps/v1:", "pulumi", ""),
    ("kubernetes:helm.sh/", "pulumi", ""),
    ("failed to determine groupversionresource", "terraform", "install"),
    ('" in group "', "terraform", ""),
    ("cannot create rest client", "terraform", ""),
    ("kubernetes_manifest", "terraform", ""),
    ("helm_release", "terraform", ""),
    ("helm install", "helm", "install"),
    ("helm upgrade", "helm", "upgrade"),
    ("helm uninstall", "helm", "uninstall"),
    ("helm delete", "helm", "uninstall"),
    ("warning: hook ", "helm", ""),
    ("release manifest", "helm", ""),
    ("current release", "helm", ""),
    ("error from server", "kubectl", ""),
    ("error when creating", "kubectl", "install"),
    ("error when applying", "kubectl", "upgrade"),
    ("unable to recognize", "kubectl", ""),
)


def context(lower: str, engine: str = "", step: str = "") -> ErrorContext:
    """The context of a text in lower case. What the user states comes first."""
    hook = _hook(lower)
    found = [(engines, steps) for sign, engines, steps in SIGNS if sign in lower]
    of_hook = hook.partition("-")[2]
    return ErrorContext(
        engine=engine or next((engines for engines, _ in found if engines), ""),
        step=step or STEP_OF.get(of_hook, of_hook).replace("sync", "") or next((s for _, s in found if s), ""),
        hook=hook,
    )


def _hook(lower: str) -> str:
    """The event of the hook that the text is about."""
    for event in HOOK_EVENTS:
        if any(sign in lower for sign in (f"failed {event}", f"{event} hook", f"hook {event}")):
            return event
    return next((event for sign, event in SYNC_HOOKS.items() if sign in lower), "")
