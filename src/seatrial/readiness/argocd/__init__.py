"""When Argo CD is content with an object: the user's Lua, the checks it brings along in Lua, those built into it."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase

from seatrial.helm.argocd_hooks import FINALIZER
from seatrial.model.resource import Body, group_of, metadata
from seatrial.readiness.argocd import builtin, bundled, lua
from seatrial.readiness.argocd.verdict import HEALTHY, PROGRESSING, WORST_LAST, Health, Script

Scripts = Mapping[str, Script]
"""Health checks of the user's, by `group/Kind`, `Kind` for the core group, or a pattern of these."""


def health(body: Body, scripts: Scripts, version: tuple[int, int]) -> Health | None:
    """Argo CD's verdict on a live object; None for a kind without a check, which is done as soon as it is there.

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


def is_missed(group: str, kind: str, scripts: Scripts, version: tuple[int, int]) -> bool:
    """Whether an object that is not there made its Application Missing before 3.4: bundled checks did not count."""
    key = f"{group}/{kind}" if group else kind
    return key in scripts or builtin.check_for(group, kind, version) is not None


def script_for(group: str, kind: str, scripts: Scripts) -> Script | None:
    """The user's own check for a kind: by its exact name, else by a pattern."""
    key = f"{group}/{kind}" if group else kind
    if key in scripts:
        return scripts[key]
    matching = (pattern for pattern in sorted(scripts) if "*" in pattern and fnmatchcase(key, pattern))
    return next((scripts[pattern] for pattern in matching), None)


def worst(verdicts: list[Health]) -> str:
    """The status of the unhealthiest; healthy where there is nothing to look at."""
    found = [v.status for v in verdicts if v.status in WORST_LAST]
    return max(found, key=WORST_LAST.index, default=HEALTHY)
