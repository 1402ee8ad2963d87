"""The deletion of an Application: hooks before it, its objects in reversed waves, hooks after it.

Upstream: `finalizeApplicationDeletion` and `shouldBeDeleted` in controller/appcontroller.go, controller/hook.go and
sort_delete.go, Argo CD 3.5. Kinds play no part in the order.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from seatrial.engines import Ended, Stuck
from seatrial.engines.argocd import versions
from seatrial.engines.argocd.app import CASCADE, PROGRAM, App, Settings
from seatrial.engines.argocd.applying import deletion
from seatrial.engines.argocd.tasks import with_namespace
from seatrial.engines.argocd.tracking import CRD, managed, wanted
from seatrial.engines.script import Command, Part, Pause, Say, Survey, Wait
from seatrial.helm import hooks
from seatrial.helm.argocd_hooks import (
    FAILED,
    SUCCEEDED,
    delete_policies,
    option,
    read_annotations,
    runs_on_deletion,
    wave_of,
)
from seatrial.model.resource import Body, Ref, metadata, ref_of
from seatrial.readiness.argocd import health, worst
from seatrial.readiness.argocd.verdict import DEGRADED, HEALTHY, PROGRESSING

WAVES_MAX = 1_000


class HeldDeletion(Struct, frozen=True):
    """A deletion that stopped: it failed, or it waits forever."""

    words: str
    stuck: Stuck | None = None


def delete(app: App, settings: Settings) -> Part[Ended]:
    """Delete an Application and everything that its finalizers require."""
    held = None
    if versions.has(settings.version, "PreDelete hooks"):
        held = yield from _run_hooks(app, settings, "PreDelete")
    if held is None and any(word.startswith(CASCADE) for word in app.finalizers):
        held = yield from _cascade(app, settings)
    if held is None and versions.has(settings.version, "PostDelete hooks"):
        held = yield from _run_hooks(app, settings, "PostDelete")
        if held is None:
            held = yield from _clean_up(app, settings, "PostDelete")
    if held is None:
        yield Say(app.ref, "is deleted")
        return Ended("ok")
    yield Say(app.ref, held.words, "waiting" if held.stuck else "said")
    if held.stuck is None:
        return Ended("failed", held.words)
    return Ended("hung", f"{held.words}: {held.stuck.sentence}. Argo CD has no timeout for this", stuck=held.stuck)


def is_kept(body: Body, app: App) -> bool:
    """Whether an object outlives its Application."""
    said = option(body, "Delete") or _of_app(app, "Delete")
    kept = read_annotations(body).get(hooks.RESOURCE_POLICY, "")
    policies = [word.strip() for word in kept.split(",")]
    return body.get("kind") == CRD or ref_of(body) == app.ref or said == "false" or "keep" in policies


def _run_hooks(app: App, settings: Settings, kind: str) -> Part[HeldDeletion | None]:
    """Create all hooks of a kind at once, whatever their waves, and wait until none is progressing."""
    whole = not versions.has(settings.version, "lists of delete hooks")
    targets = (with_namespace(target, app) for target in wanted(app, settings)[0])
    expected = [t for t in targets if runs_on_deletion(t.body, kind, whole_value=whole)]
    if not expected:
        return None
    live = yield from _managed(app, settings)
    new = [target for target in expected if target.ref not in live]
    for target in expected:
        if target.ref not in live:
            ref = target.ref
            version, body = str(target.body["apiVersion"]), target.body
            answer = yield Command("create", version, ref.kind, ref.namespace, body=body, field_manager=PROGRAM)
            if answer.message and answer.code != 409:
                return HeldDeletion(answer.message)
    if new and kind == "PreDelete" and not (yield Pause()).quick:
        # The next pass comes before the controller's cache has them: it cannot create them, takes them for present,
        # and sees none that is running. The cascade then deletes them. argo-cd issue 29100.
        yield Say(app.ref, f"takes its {kind} hooks for completed")
        return None
    refs = tuple(target.ref for target in expected)
    while True:
        answer = yield Wait(refs)
        live = yield from _managed(app, settings)
        running = [body for body in live.values() if runs_on_deletion(body, kind, whole_value=whole)]
        statuses = {ref_of(body): _status(body, settings) for body in running}
        failed = [ref for ref, status in statuses.items() if status == DEGRADED]
        if failed and versions.has(settings.version, "failed delete hooks are retried"):
            for ref in failed:
                yield deletion(live[ref], ref, "Foreground")
            named = ", ".join(f"{ref.namespace}/{ref.name}" for ref in failed)
            return HeldDeletion(f"{kind} hook(s) failed: {named}")
        if PROGRESSING not in statuses.values():
            return None
        if answer.stuck:
            return HeldDeletion(f"waiting for {kind} hooks", answer.stuck)


def _cascade(app: App, settings: Settings) -> Part[HeldDeletion | None]:
    """Delete the tracked objects, highest wave first; an object that is being deleted blocks the next wave."""
    background = f"{CASCADE}/background" in app.finalizers
    policy = "Background" if background else "Foreground"
    for _ in range(WAVES_MAX):
        live = yield from _managed(app, settings)
        going = {ref: body for ref, body in live.items() if not is_kept(body, app)}
        leaving = [ref for ref, body in live.items() if metadata(body).get("deletionTimestamp")]
        if not going and set(leaving) <= {app.ref}:
            return None
        unconfirmed = [ref for ref, body in going.items() if _needs_confirmation(body, app, settings)]
        if unconfirmed and not leaving:
            return _unconfirmed(unconfirmed[0])
        if not leaving:
            wave = max(wave_of(body) for body in going.values())
            yield Say(app.ref, f"deletes wave {wave}")
            leaving = [ref for ref, body in going.items() if wave_of(body) == wave]
            for ref in leaving:
                answer = yield deletion(going[ref], ref, policy)
                if answer.message and answer.code != 404:
                    return HeldDeletion(answer.message)
        answer = yield Wait(tuple(leaving))
        left = yield from _managed(app, settings)
        if answer.stuck and left.keys() == live.keys() and _is_leaving(left.values()):
            words = f"{len(left)} objects remaining for deletion"
            return HeldDeletion(words, answer.stuck)
    return HeldDeletion("the deletion never ends")


def _needs_confirmation(body: Body, app: App, settings: Settings) -> bool:
    """Whether a deletion must be confirmed; `Prune=confirm` requires that as well."""
    said = [option(body, name) or _of_app(app, name) for name in ("Delete", "Prune")]
    return "confirm" in said and versions.has(settings.version, "Prune=confirm")


def _of_app(app: App, name: str) -> str | None:
    return next((word.partition("=")[2] for word in app.options if word.startswith(f"{name}=")), None)


def _unconfirmed(ref: Ref) -> HeldDeletion:
    """An unconfirmed deletion blocks all others: no wave is deleted before it."""
    words = f"Resource {ref.group}/{ref.kind}/{ref.namespace}/{ref.name} requires manual confirmation to delete"
    return HeldDeletion(words, Stuck("argocd.argoproj.io/deletion-approved is not set on its Application", (ref,), ()))


def _clean_up(app: App, settings: Settings, kind: str) -> Part[HeldDeletion | None]:
    """Delete hooks whose policy matches the outcome of all of them; the default policy never matches."""
    live = yield from _managed(app, settings)
    running = {ref: body for ref, body in live.items() if runs_on_deletion(body, kind)}
    verdicts = [v for body in running.values() if (v := health(body, settings.scripts, settings.version))]
    outcome = worst(verdicts)
    for ref, body in running.items():
        policies = delete_policies(body)
        if (SUCCEEDED in policies and outcome == HEALTHY) or (FAILED in policies and outcome == DEGRADED):
            yield deletion(body, ref, "Foreground")
    return None


def _managed(app: App, settings: Settings) -> Part[dict[Ref, Body]]:
    found = yield Survey()
    return {ref_of(body): body for body in managed(found.body["items"], app, settings)}


def _status(body: Body, settings: Settings) -> str:
    verdict = health(body, settings.scripts, settings.version)
    return HEALTHY if verdict is None else verdict.status


def _is_leaving(bodies: Iterable[Body]) -> bool:
    return any(metadata(body).get("deletionTimestamp") for body in bodies)
