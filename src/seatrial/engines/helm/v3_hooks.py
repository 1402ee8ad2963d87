"""How Helm 3 runs hooks: one after another, each recreated and waited for. Models `pkg/action/hooks.go` of 3.22."""

from __future__ import annotations

from collections.abc import Iterable

from seatrial.engines.helm.v3_objects import (
    INSTALL_ORDER,
    Failed,
    about,
    built,
    by_kind,
    counted,
    create,
    delete,
    failure_of,
    is_gone,
    wait,
)
from seatrial.engines.script import Part
from seatrial.helm import hooks
from seatrial.model.refusal import Failure, Fault
from seatrial.model.release import Resource
from seatrial.model.resource import Body, dig, listed, name_of
from seatrial.readiness.helm3 import is_hook_done

NEVER_DELETED = "CustomResourceDefinition"


def run(resources: Iterable[Resource], event: str, patience_seconds: float) -> Part[None]:
    """Run the hooks of an event; the first that fails ends it, and what comes after it never runs."""
    chosen = _of(resources, event)
    for index, hook in enumerate(chosen):
        if hooks.BEFORE_CREATION in hooks.delete_policies(hook.body):
            yield from _remove(hook)
        try:
            yield from built([hook], f"unable to build kubernetes object for {event} hook {hook.file}: ")
        except Failed as why:
            raise why.because(_failed(hook)) from None
        try:
            yield from create([hook], None)
        except Failed as why:
            words = f"warning: Hook {event} {hook.file} failed: {why}"
            raise why.within(words).because(_failed(hook)) from None
        try:
            yield from _watch(hook, patience_seconds)
        except Failed:
            if hooks.FAILED in hooks.delete_policies(hook.body):
                yield from _remove(hook)
            yield from _remove_succeeded(chosen[:index])
            raise
    yield from _remove_succeeded(reversed(chosen))


def _of(resources: Iterable[Resource], event: str) -> list[Resource]:
    known = [r for r in resources if hooks.is_hook(r.body) and not hooks.unknown_events(r.body)]
    chosen = [r for r in by_kind(known, INSTALL_ORDER) for name in hooks.events_of(r.body) if name == event]
    return sorted(chosen, key=lambda r: (hooks.weight_of(r.body), r.ref.name.encode()))


def _failed(hook: Resource) -> Fault:
    return Fault("hook-failed", hook.ref, file=hook.file)


def _remove_succeeded(ran: Iterable[Resource]) -> Part[None]:
    for hook in ran:
        if hooks.SUCCEEDED in hooks.delete_policies(hook.body):
            yield from _remove(hook)


def _remove(hook: Resource) -> Part[None]:
    """Delete a hook, even if another release created it, and wait until it is gone."""
    if hook.ref.kind == NEVER_DELETED:
        return
    yield from built([hook], f"unable to build kubernetes object for deleting hook {hook.file}: ", "hook-deletion")
    if refused := (yield from delete([hook])):
        raise Failed("; ".join(answer.message for answer in refused), failure=failure_of(refused))
    yield from wait([hook], is_gone, "context deadline exceeded")


def _watch(hook: Resource, patience_seconds: float) -> Part[None]:
    """Jobs and Pods must succeed; anything else must only exist. `perform` of `client.go` counts what goes wrong."""
    yield from wait([hook], is_hook_done, counted(["timed out waiting for the condition"]), patience_seconds)
    live = yield about(hook, "get")
    if words := _failure(live.body):
        raise Failed(counted([words]), failure=Failure(faults=(Fault("not-ready", hook.ref, status="Failed"),)))


def _failure(body: Body) -> str:
    if body.get("kind") == "Pod" and dig(body, "status", "phase") == "Failed":
        return f"pod {name_of(body)} failed"
    failed = [
        c for c in listed(body, "status", "conditions") if c.get("type") == "Failed" and c.get("status") == "True"
    ]
    return f"job {name_of(body)} failed: {failed[0].get('reason', '')}" if body.get("kind") == "Job" and failed else ""
