"""Who acts in a step and what the step is called: `Helm`, `helm upgrade`, `the sync`."""

from __future__ import annotations

from seatrial.model.engine import EngineId
from seatrial.model.timeline import StepResult

ARGOCD_ACTS = {"sync": "the sync", "delete": "deleting the Application"}
FLUX_ACTS = {"sync": "the sync", "delete": "flux delete"}
ENGINES = {"helm": "Helm", "argocd": "Argo CD", "flux": "Flux", "pulumi": "Pulumi"}
BY_HAND = {"helm": ("apply", "delete"), "pulumi": ("apply", "delete"), "flux": ("apply",), "argocd": ("apply",)}
"""Steps that are not the engine's: someone runs kubectl meanwhile."""


def label_of(engine: EngineId) -> str:
    """The engine as people call it: `Argo CD`."""
    return ENGINES.get(engine.name, engine.name)


def speaker_of(engine: EngineId, ended: StepResult) -> str:
    """Who acts in a step: the engine, or kubectl for what someone else does meanwhile."""
    return "kubectl" if ended.action in BY_HAND.get(engine.name, ()) else label_of(engine)


def act_of(engine: EngineId, ended: StepResult) -> str:
    """What the step is called: `helm upgrade`, `the sync`."""
    if engine.name == "argocd" and ended.action in ARGOCD_ACTS:
        return ARGOCD_ACTS[ended.action]
    if engine.name == "flux" and ended.action in FLUX_ACTS:
        return FLUX_ACTS[ended.action]
    prunes = " --prune" if "--prune" in ended.flags else ""
    return f"{speaker_of(engine, ended).lower()} {ended.action}{prunes}"
