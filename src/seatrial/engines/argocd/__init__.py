"""Argo CD as scripts: syncs of Applications with their phases, waves, hooks, health and prunes, and their deletion.

Models Argo CD 2.8 to 3.5 (`versions`), from the source of v3.5.1: gitops-engine/pkg/sync and controller/.
"""

from __future__ import annotations

from seatrial.engines.argocd.app import App, Asked, Filter, Settings, Target
from seatrial.engines.argocd.deletion import delete
from seatrial.engines.argocd.reconciling import ended, requested, synced
from seatrial.engines.script import Script

NAME = "argocd"

__all__ = ["NAME", "App", "Asked", "Filter", "Settings", "Target", "delete", "requested", "sync"]


def sync(app: App, settings: Settings, asked: Asked) -> Script:
    """Sync one Application, to its end."""
    tried = yield from synced(app, settings, asked)
    return ended([tried])
