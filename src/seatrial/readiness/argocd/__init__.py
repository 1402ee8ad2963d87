"""When Argo CD considers an object healthy: the user's Lua, the bundled Lua checks, the built-in checks."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase

from seatrial.helm.argocd_hooks import FINALIZER
from seatrial.model.resource import Body, group_of, metadata
from seatrial.readiness.argocd import builtin, bundled, lua
from seatrial.readiness.argocd.verdict import HEALTHY, PROGRESSING, WORST_LAST, Health, HealthScript

Scripts = Mapping[str, HealthScript]
"""The user's health checks, by `group/Kind`, `Kind` for the core group, or a pattern of these."""


def health(body: Body, scripts: Scripts, version: tuple[int, int]) -> Health | None:
    """Argo CD's health of a live object; None for a kind without a check, which is healthy as soon as it exists.

    Upstream: `GetResourceHealth` in gitops-engine/pkg/health/health.go, `GetHealthScript` in util/lua/lua.go.
    """
    meta = metadata(body)
    if meta.get("deletionTimestamp") and FINALIZER not in (meta.get("finalizers") or ()):
        return Health(PROGRESSING, "Pending deletion")
    group, kind = group_of(str(body.get("apiVersion", ""))), str(body.get("kind", ""))
    script = script_for(group, kind, scripts)
    if script is not None:
        return lua.health(script, body)
    for check in (bundled.check_for(group, kind, version), builtin.check_for(group, kind, version)):
        if check is not None:
            return check(body)
    return None


def counts_as_missing(group: str, kind: str, scripts: Scripts, version: tuple[int, int]) -> bool:
    """Whether a missing object made its Application Missing before 3.4. Bundled checks did not count."""
    key = f"{group}/{kind}" if group else kind
    return key in scripts or builtin.check_for(group, kind, version) is not None


def script_for(group: str, kind: str, scripts: Scripts) -> HealthScript | None:
    """The user's check for a kind: by its exact name, otherwise by a pattern."""
    key = f"{group}/{kind}" if group else kind
    if key in scripts:
        return scripts[key]
    matching = (pattern for pattern in sorted(scripts) if "*" in pattern and fnmatchcase(key, pattern))
    return next((scripts[pattern] for pattern in matching), None)


def worst(verdicts: list[Health]) -> str:
    """The status of the least healthy; Healthy if the list is empty."""
    found = [v.status for v in verdicts if v.status in WORST_LAST]
    return max(found, key=WORST_LAST.index, default=HEALTHY)
