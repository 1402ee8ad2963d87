"""Who acts in a step and what the step is called: `Helm`, `helm upgrade`, `the sync`."""

from __future__ import annotations

from seatrial.model.timeline import Rehearsal

ARGOCD_ACTS = {"sync": "the sync", "delete": "deleting the Application"}
FLUX_ACTS = {"sync": "the sync", "delete": "flux delete"}
ENGINES = {"helm": "Helm", "argocd": "Argo CD", "flux": "Flux", "pulumi": "Pulumi"}
BY_HAND = {"helm": ("apply", "delete"), "pulumi": ("apply", "delete"), "flux": ("apply",), "argocd": ("apply",)}
"""Steps that are not the engine's: someone runs kubectl meanwhile."""


def engine_in_words(rehearsal: Rehearsal) -> str:
    """The engine as people call it: `Argo CD`."""
    name = rehearsal.engine.name
    return ENGINES.get(name, name)


def speaker(rehearsal: Rehearsal, step: int) -> str:
    """Who acts in a step, as people call it: the engine, or kubectl for what somebody does meanwhile."""
    by_hand = rehearsal.steps[step].action in BY_HAND.get(rehearsal.engine.name, ())
    return "kubectl" if by_hand else engine_in_words(rehearsal)


def says(rehearsal: Rehearsal, step: int) -> str:
    """The words with which a step ended: `kubectl says: "..."`."""
    return f'{speaker(rehearsal, step)} says: "{rehearsal.steps[step].error.strip()}"'


def act_in_words(rehearsal: Rehearsal, step: int) -> str:
    """What the engine is at: `helm upgrade`, `the sync`."""
    action = rehearsal.steps[step].action
    if rehearsal.engine.name == "argocd" and action in ARGOCD_ACTS:
        return ARGOCD_ACTS[action]
    if rehearsal.engine.name == "flux" and action in FLUX_ACTS:
        return FLUX_ACTS[action]
    prunes = " --prune" if "--prune" in rehearsal.steps[step].flags else ""
    return f"{speaker(rehearsal, step).lower()} {action}{prunes}"
