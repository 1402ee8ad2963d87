"""Flux as scripts: Kustomizations applied in stages and HelmReleases by the real Helm, in the order of dependsOn.

Models Flux 2.9: kustomize-controller 1.9, helm-controller 1.6 (which embeds Helm 4) and the package fluxcd/pkg/ssa.
"""

from __future__ import annotations

from seatrial.engines.flux.fleet import delete_fleet, sync_fleet
from seatrial.engines.flux.objects import (
    Fleet,
    HelmRelease,
    Ignored,
    Kustomization,
    Memory,
    Policy,
)

NAME = "flux"
VERSION = "2.9"

__all__ = [
    "NAME",
    "VERSION",
    "Fleet",
    "HelmRelease",
    "Ignored",
    "Kustomization",
    "Memory",
    "Policy",
    "delete_fleet",
    "sync_fleet",
]
