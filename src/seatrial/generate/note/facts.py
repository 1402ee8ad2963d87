"""What a rehearsal shows of each object: when it is created, and what an upgrade and a removal do to it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

from seatrial.generate.order.requirements import OrderRequirement, requirements
from seatrial.graph.linking import graph_of
from seatrial.helm import argocd_hooks, hooks
from seatrial.model.release import Case, Release, Resource
from seatrial.model.resource import Ref
from seatrial.model.timeline import Rehearsal, StepResult

CRDS, REGULAR = "crds/", "regular"
Upgraded = Literal["kept", "recreated", "runs again", "deleted", ""]
Removed = Literal["deleted", "left", ""]


class Fact(Struct, frozen=True):
    """One object of a release."""

    ref: Ref
    phase: str
    """`pre-install`, `regular`, `post-install`; `PreSync`, `Sync`, `PostSync`; `crds/`."""
    weight: int = 0
    """Its hook weight or wave."""
    hook: bool = False
    policies: tuple[str, ...] = ()
    """When a hook is deleted, defaults included."""
    order: int | None = None
    """Its place among the objects that the first step creates; None if it was not reached."""
    upgraded: Upgraded = ""
    """What the next deployment of the same does to it; empty if that was not rehearsed."""
    removed: Removed = ""
    needs: tuple[OrderRequirement, ...] = ()


class Facts(Struct, frozen=True):
    name: str
    engine: str
    """`helm`"""
    label: str
    """`Helm`"""
    objects: tuple[Fact, ...]
    """In the order in which they are created; then those that were not reached."""
    again: str
    """What the engine calls the next deployment of the same: `upgrade`."""
    removal: str
    """What it calls the removal: `uninstall`."""
    failed: tuple[str, ...] = ()
    """How steps ended that did not end well: `helm upgrade hangs: ...`."""


def facts_of(rehearsal: Rehearsal, case: Case) -> Facts:
    first = next((n for n, step in enumerate(rehearsal.steps) if step.role in ("install", "replace")), 0)
    again = next((n for n, step in enumerate(rehearsal.steps) if n > first and step.role == "replace"), None)
    last = next((n for n, step in enumerate(rehearsal.steps) if n > first and step.role == "remove"), None)
    release = case.releases[first] or Release("", "", "", ())
    created = _order(rehearsal, first, release)
    graph = graph_of([release])
    needs: dict[Ref, list[OrderRequirement]] = {}
    for one in requirements(graph):
        needs.setdefault(one.user, []).append(one)
    found = [
        Fact(
            ref=resource.ref,
            phase=phase,
            weight=weight,
            hook=_is_hook(resource, rehearsal),
            policies=_policies(resource, rehearsal) if _is_hook(resource, rehearsal) else (),
            order=created.get(resource.ref),
            upgraded=_upgraded(resource.ref, rehearsal, again),
            removed=_removed(resource.ref, rehearsal.steps[last]) if last is not None else "",
            needs=tuple(needs.get(resource.ref, ())),
        )
        for resource, phase, weight in _placed(release, rehearsal, first)
    ]
    found.sort(key=lambda fact: (fact.order is None, fact.order or 0, fact.ref))
    failed = tuple(
        f"{step.act or step.action} {step.outcome}: {step.error}"
        for number, step in enumerate(rehearsal.steps)
        if number in (first, again, last) and step.outcome != "ok"
    )
    again_word, removal_word = (
        rehearsal.steps[number].action if number is not None else default
        for number, default in ((again, "the next deployment"), (last, "removal"))
    )
    return Facts(
        name=release.name,
        engine=rehearsal.engine.name,
        label=rehearsal.label,
        objects=tuple(found),
        again=again_word,
        removal=removal_word,
        failed=failed,
    )


def _order(rehearsal: Rehearsal, step: int, release: Release) -> dict[Ref, int]:
    """The objects of a release that the engine creates in a step, counted from 1."""
    own = {resource.ref for resource in (*release.crds, *release.resources)}
    events = (e for e in rehearsal.of_step(step) if e.effect == "created" and e.actor in rehearsal.actors)
    created = dict.fromkeys(event.object for event in events if event.object in own)
    return {ref: place for place, ref in enumerate(created, start=1)}


def _placed(release: Release, rehearsal: Rehearsal, step: int) -> Iterator[tuple[Resource, str, int]]:
    """Each object once for each of its phases; tests and hooks of other actions are left out."""
    tasks = {t.object: t for operation in rehearsal.steps[step].operations for t in operation.tasks if not t.prune}
    yield from ((crd, CRDS if rehearsal.engine.name == "helm" else "Sync", 0) for crd in release.crds)
    for resource in release.resources:
        task = tasks.get(resource.ref)
        if task is not None:
            yield resource, task.phase, task.wave
        elif rehearsal.engine.name == "argocd" and (phases := argocd_hooks.phases_of(resource.body)):
            yield resource, phases[0], argocd_hooks.wave_of(resource.body)
        elif rehearsal.engine.name != "argocd" and hooks.is_hook(resource.body):
            runs = [event for event in hooks.events_of(resource.body) if event in ("pre-install", "post-install")]
            yield from ((resource, event, hooks.weight_of(resource.body)) for event in runs)
        elif rehearsal.engine.name != "argocd":
            yield resource, REGULAR, 0


def _is_hook(resource: Resource, rehearsal: Rehearsal) -> bool:
    is_argocd = rehearsal.engine.name == "argocd"
    return argocd_hooks.is_hook(resource.body) if is_argocd else hooks.is_hook(resource.body)


def _policies(resource: Resource, rehearsal: Rehearsal) -> tuple[str, ...]:
    is_argocd = rehearsal.engine.name == "argocd"
    return argocd_hooks.delete_policies(resource.body) if is_argocd else hooks.delete_policies(resource.body)


def _upgraded(ref: Ref, rehearsal: Rehearsal, step: int | None) -> Upgraded:
    if step is None:
        return ""
    effects = [e.effect for e in rehearsal.of_object(ref) if e.step == step]
    existed = any(e.step < step for e in rehearsal.of_object(ref))
    before = next((e.effect for e in reversed(list(rehearsal.of_object(ref))) if e.step < step), "")
    if "created" in effects:
        return "runs again" if ref.kind in ("Job", "Pod") else "recreated"
    if "deleted" in effects:
        return "deleted"
    return "kept" if existed and before != "deleted" else ""


def _removed(ref: Ref, step: StepResult) -> Removed:
    return "left" if ref in step.orphans else "deleted" if ref in step.deleted else ""
