"""How Helm 3 runs hooks: one after another, each recreated and waited for. Models `pkg/action/hooks.go` of 3.22."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePosixPath

from seatrial.engines.helm.v3_objects import (
    INSTALL_ORDER,
    Failed,
    about,
    built,
    counted,
    create,
    delete,
    failure_of,
    is_gone,
    wait,
)
from seatrial.engines.script import Part
from seatrial.helm import hooks
from seatrial.helm.kindorder import by_kind
from seatrial.model.refusal import Failure, Fault
from seatrial.model.release import Release, Resource
from seatrial.model.resource import Body, dig, listed, name_of
from seatrial.readiness.helm3 import is_hook_done

NEVER_DELETED = "CustomResourceDefinition"


def run(release: Release, event: str, patience_seconds: float) -> Part[None]:
    """Run the hooks of an event; the first that fails ends it, and what comes after it never runs."""
    chosen = _of(release.resources, event)
    for index, hook in enumerate(chosen):
        path = _path(release, hook)
        if hooks.BEFORE_CREATION in hooks.delete_policies(hook.body):
            yield from _remove(hook, path)
        try:
            yield from built([hook], f"unable to build kubernetes object for {event} hook {path}: ")
        except Failed as why:
            raise why.because(_failed(hook)) from None
        try:
            yield from create([hook], None)
        except Failed as why:
            words = f"warning: Hook {event} {path} failed: {why}"
            raise why.within(words).because(_failed(hook)) from None
        try:
            yield from _watch(hook, patience_seconds)
        except Failed:
            if hooks.FAILED in hooks.delete_policies(hook.body):
                yield from _remove(hook, path)
            yield from _remove_succeeded(release, chosen[:index])
            raise
    yield from _remove_succeeded(release, reversed(chosen))


def _path(release: Release, hook: Resource) -> str:
    """As Helm names a template: below the name of the chart, whatever its folder is called."""
    file, folder = PurePosixPath(hook.file), PurePosixPath(release.source)
    if not release.chart or not file.is_relative_to(folder):
        return hook.file
    return str(release.chart / file.relative_to(folder))


def _of(resources: Iterable[Resource], event: str) -> list[Resource]:
    known = [r for r in resources if hooks.is_hook(r.body) and not hooks.unknown_events(r.body)]
    chosen = [r for r in by_kind(known, INSTALL_ORDER) for name in hooks.events_of(r.body) if name == event]
    return sorted(chosen, key=lambda r: (hooks.weight_of(r.body), r.ref.name.encode()))


def _failed(hook: Resource) -> Fault:
    return Fault("hook-failed", hook.ref, file=hook.file)


def _remove_succeeded(release: Release, ran: Iterable[Resource]) -> Part[None]:
    for hook in ran:
        if hooks.SUCCEEDED in hooks.delete_policies(hook.body):
            yield from _remove(hook, _path(release, hook))


def _remove(hook: Resource, path: str) -> Part[None]:
    """Delete a hook, even if another release created it, and wait until it is gone."""
    if hook.ref.kind == NEVER_DELETED:
        return
    yield from built([hook], f"unable to build kubernetes object for deleting hook {path}: ", "hook-deletion")
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
