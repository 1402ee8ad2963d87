"""Argo CD as scripts: syncs of Applications with their phases, waves, hooks, health and prunes, and their deletion.

Models Argo CD 2.8 to 3.5 (`versions`), from the source of v3.5.1: gitops-engine/pkg/sync and controller/.
"""

from __future__ import annotations

from seatrial.engines.argocd.app import App, Filter, Settings
from seatrial.engines.argocd.fleet import Fleet, Memory, delete_fleet, sync_fleet
from seatrial.engines.argocd.sets import AppSet

NAME = "argocd"

__all__ = ["NAME", "App", "AppSet", "Filter", "Fleet", "Memory", "Settings", "delete_fleet", "sync_fleet"]
