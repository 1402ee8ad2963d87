"""One reconciliation of one Kustomization: stages, inventory, pruning, health. And what becomes of its objects with it.

Upstream: `reconcile`, `apply`, `prune`, `checkHealth` and `finalize` in
internal/controller/kustomization_controller.go of kustomize-controller 1.9.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from msgspec import Struct

from seatrial.engines import Stuck
from seatrial.engines.flux.applying import about, apply_stage, is_set, owner_labels
from seatrial.engines.flux.dependencies import TERMINAL
from seatrial.engines.flux.objects import Kustomization, Memory, Target
from seatrial.engines.flux.order import in_order, stages
from seatrial.engines.flux.waiting import wait_for
from seatrial.engines.script import Command, Part
from seatrial.resource import labels_of

STAGE_TIMEOUT = "1m0s"
"""After definitions and classes, whatever `spec.timeout` says."""


Cause = Literal["", "refused", "waited", "tested"]


class Attempt(Struct, frozen=True):
    """How one reconciliation ended; no words are success."""

    words: str = ""
    stuck: Stuck | None = None
    timeout: str = ""
    """After which a wait that cannot end is given up."""
    is_final: bool = False
    """Whether it is not tried again by itself."""
    cause: Cause = ""
    """What of a HelmRelease failed."""


def reconcile(kustomization: Kustomization, memory: Memory) -> Part[Attempt]:
    """Bring the cluster to what a Kustomization says."""
    if kustomization.invalid:
        return Attempt(f"{TERMINAL}: {kustomization.invalid}", is_final=True)
    if kustomization.error:
        return Attempt(kustomization.error)
    applied = [t for t in kustomization.targets if not is_set(t.body, "reconcile", "disabled")]
    parts = stages(kustomization.targets)
    for index, stage in enumerate(parts):
        words = yield from apply_stage(stage, kustomization)
        if words:
            return Attempt(words)
        if index < len(parts) - 1:
            waited = yield from wait_for((t.ref for t in stage), memory, STAGE_TIMEOUT)
            if waited.words:
                return Attempt(waited.words, waited.stuck, STAGE_TIMEOUT)
    before = memory.inventory.get(kustomization.ref, ())
    memory.inventory[kustomization.ref] = tuple(kustomization.targets)
    if kustomization.prune:
        kept = {target.ref for target in kustomization.targets}
        yield from delete_objects((t for t in before if t.ref not in kept), kustomization)
    checked = [target.ref for target in applied] if kustomization.wait else list(kustomization.health_checks)
    others = (ref for ref in checked if ref != kustomization.ref)
    waited = yield from wait_for(others, memory, kustomization.timeout, kustomization.health)
    if waited.stuck:
        return Attempt(f"health check failed after {kustomization.timeout}: {waited.words}", waited.stuck)
    return Attempt(waited.words)  # How long it took to fail early, which Flux tells, too, nobody here knows.


def finalize(kustomization: Kustomization, memory: Memory) -> Part[None]:
    """Delete what a Kustomization has made, where its policy says so. dependsOn plays no part."""
    made = memory.inventory.pop(kustomization.ref, ())
    memory.ready.pop(kustomization.ref, None)
    deletes = {"MirrorPrune": kustomization.prune, "Orphan": False}.get(kustomization.deletion_policy, True)
    if deletes and not kustomization.suspended:
        yield from delete_objects(made, kustomization)


def delete_objects(targets: Iterable[Target], kustomization: Kustomization) -> Part[None]:
    """In the reverse order of kinds, without waiting; what is not marked as this Kustomization's is left alone."""
    for target in reversed(in_order(targets)):
        live = yield about(target, "get")
        if live.code != 200 or is_set(live.body, "prune", "disabled"):
            continue
        if not owner_labels(kustomization).items() <= labels_of(live.body).items():
            continue
        ref, version = target.ref, str(target.body["apiVersion"])
        yield Command("delete", version, ref.kind, ref.namespace, ref.name, propagation="Background")
