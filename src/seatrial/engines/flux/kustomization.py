"""One reconciliation of one Kustomization: stages, inventory, pruning, health; and its deletion.

Upstream: `reconcile`, `apply`, `prune`, `checkHealth` and `finalize` in
internal/controller/kustomization_controller.go of kustomize-controller 1.9.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from msgspec import Struct

from seatrial.engines import Stuck
from seatrial.engines.flux.applying import about, apply_stage, is_excluded, is_set, owner_labels
from seatrial.engines.flux.dependencies import TERMINAL
from seatrial.engines.flux.objects import FluxMemory, Kustomization
from seatrial.engines.flux.order import in_order, stages
from seatrial.engines.flux.waiting import wait_for
from seatrial.engines.script import Command, DescribedObject, Part, Say, Survey, Wait
from seatrial.model.refusal import NO_FAILURE, Failure, joined
from seatrial.model.resource import Ref, labels_of, ref_of

STAGE_TIMEOUT = "1m0s"
"""The wait after CRDs and classes, whatever `spec.timeout` says."""

Cause = Literal["", "refused", "waited", "tested"]


class Attempt(Struct, frozen=True):
    """How one reconciliation ended; an empty message is success."""

    words: str = ""
    stuck: Stuck | None = None
    timeout: str = ""
    """After which a wait that cannot end is given up."""
    is_final: bool = False
    """Whether it is not tried again by itself."""
    cause: Cause = ""
    """What of a HelmRelease failed."""
    failure: Failure = NO_FAILURE
    failed: str = ""
    """The action of Helm that failed."""


def reconcile(kustomization: Kustomization, memory: FluxMemory) -> Part[Attempt]:
    """Apply a Kustomization."""
    if kustomization.invalid:
        return Attempt(f"{TERMINAL}: {kustomization.invalid}", is_final=True)
    if kustomization.error:
        return Attempt(kustomization.error)
    parts = stages(kustomization.targets)
    skipped: set[Ref] = set()
    for index, stage in enumerate(parts):
        staged = yield from apply_stage(stage, kustomization)
        skipped |= staged.skipped
        if staged.words:
            return Attempt(staged.words, failure=staged.failure)
        if index < len(parts) - 1:
            waited = yield from wait_for((t.ref for t in stage), memory, STAGE_TIMEOUT)
            if waited.words:
                return Attempt(waited.words, waited.stuck, STAGE_TIMEOUT, failure=waited.failure)
    pruned = yield from _prune(kustomization, memory)
    if pruned.words:
        return Attempt(pruned.words, failure=pruned.failure)
    applied = (target.ref for target in kustomization.targets if target.ref not in skipped)
    checked = applied if kustomization.wait else kustomization.health_checks
    others = (ref for ref in checked if ref != kustomization.ref)
    waited = yield from wait_for(others, memory, kustomization.timeout, kustomization.health)
    if waited.stuck:
        words = f"health check failed after {kustomization.timeout}: {waited.words}"
        return Attempt(words, waited.stuck, failure=waited.failure)
    # Flux also reports how long it took to fail early, which is not known here.
    return Attempt(waited.words, failure=waited.failure)


def finalize(kustomization: Kustomization, memory: FluxMemory) -> Part[Deleted]:
    """Delete the objects of a Kustomization, if its policy says so. dependsOn does not matter."""
    made = memory.inventory.pop(kustomization.ref, ())
    memory.ready.pop(kustomization.ref, None)
    deletes = {"MirrorPrune": kustomization.prune, "Orphan": False}.get(kustomization.deletion_policy, True)
    if not deletes or kustomization.suspended:
        return Deleted()
    deleted = yield from delete_objects(made, kustomization)
    if not deleted.words and kustomization.deletion_policy == "WaitForTermination":
        yield from _terminated(kustomization, deleted.gone)
    return deleted


class Deleted(Struct, frozen=True):
    """What was deleted, what was not, and why."""

    gone: tuple[Ref, ...] = ()
    survivors: tuple[DescribedObject, ...] = ()
    words: str = ""
    failure: Failure = NO_FAILURE


def delete_objects(targets: Iterable[DescribedObject], kustomization: Kustomization) -> Part[Deleted]:
    """In reverse kind order, without waiting; objects without this Kustomization's labels are left alone."""
    gone, survivors, words, failure = [], [], "", NO_FAILURE
    for target in reversed(in_order(targets)):
        live = yield about(target, "get")
        if live.code != 200 or is_set(live.body, "prune", "disabled") or is_excluded(live.body):
            continue
        if not owner_labels(kustomization).items() <= labels_of(live.body).items():
            continue
        ref, version = target.ref, str(target.body["apiVersion"])
        answer = yield Command("delete", version, ref.kind, ref.namespace, ref.name, propagation="Background")
        if answer.message and answer.code != 404:
            survivors.append(target)
            words += f"{ref} delete failed: {answer.message};"
            failure = joined(failure, answer.failure)
        else:
            gone.append(ref)
    return Deleted(tuple(gone), tuple(survivors), f"delete failed, errors: {words}" if words else "", failure)


def _prune(kustomization: Kustomization, memory: FluxMemory) -> Part[Deleted]:
    """Prune dropped objects; failed deletions are remembered and retried."""
    before = memory.inventory.get(kustomization.ref, ())
    memory.inventory[kustomization.ref] = tuple(kustomization.targets)
    if not kustomization.prune:
        return Deleted()
    kept = {target.ref for target in kustomization.targets}
    deleted = yield from delete_objects((t for t in before if t.ref not in kept), kustomization)
    memory.inventory[kustomization.ref] += deleted.survivors
    return deleted


def _terminated(kustomization: Kustomization, refs: tuple[Ref, ...]) -> Part[None]:
    """Wait until deleted objects are gone; after a timeout Flux reports it and continues."""
    while True:
        found = yield Survey()
        there = {ref_of(body) for body in found.body["items"]}
        left = tuple(ref for ref in refs if ref in there)
        if not left:
            return
        if (yield Wait(left)).stuck is not None:
            yield Say(kustomization.ref, "failed to wait for resources termination")
            return
