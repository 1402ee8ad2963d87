"""What Argo CD's controller makes of an Application: whether a sync begins by itself, and how often it is tried again.

Upstream: `processRequestedAppOperation` and `autoSync` in controller/appcontroller.go, Argo CD 3.5.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from seatrial.argocdhooks import is_hook, is_skipped
from seatrial.engines import Ended, Stuck
from seatrial.engines.argocd.app import AUTOMATED_RETRIES, App, Asked, Settings
from seatrial.engines.argocd.comparing import is_modified
from seatrial.engines.argocd.operation import Sync
from seatrial.engines.argocd.tasks import live_ref
from seatrial.engines.argocd.tracking import managed, speaks_of_itself, wanted
from seatrial.engines.script import Part, Say, Survey, Wait
from seatrial.resource import Ref
from seatrial.timeline import Operation


class Tried(Struct, frozen=True):
    """An operation with all its attempts; `stuck` where it never ends."""

    operation: Operation
    stuck: Stuck | None = None


class Compared(Struct, frozen=True):
    """What the comparison of an Application with the cluster shows."""

    modified: tuple[Ref, ...] = ()
    """Wanted, and missing or otherwise than it should be."""
    extra: tuple[Ref, ...] = ()
    """There, and no longer wanted."""
    wanted: int = 0

    @property
    def out_of_sync(self) -> bool:
        return bool(self.modified or self.extra)


def synced(app: App, settings: Settings, asked: Asked) -> Part[Tried]:
    """Sync, and again from the start where that failed and retries are left."""
    attempt, before = 0, ""
    while True:
        sync = Sync(app, settings, asked)
        operation = yield from sync.run()
        if operation.phase not in ("Failed", "Error") or attempt >= asked.retries:
            break
        if attempt and operation.message == before:
            attempt = asked.retries  # Nothing is different from the last time, so it will not be the next time either.
            break
        attempt, before = attempt + 1, operation.message
        yield Say(app.ref, f"retries, attempt #{attempt}")
        yield Wait(tuple(task.object for task in operation.tasks))
    message = f"{operation.message} (retried {attempt} times)." if attempt else operation.message
    return Tried(replace(operation, message=message, attempts=attempt + 1), sync.stuck)


def requested(app: App, *, prune: bool = False, started: int = 0) -> Asked:
    """A sync that somebody asks for: with the Application's own prune and retries where it is automated."""
    limit = AUTOMATED_RETRIES if app.automated else 0
    retries = limit if app.retries is None else app.retries
    return Asked(prune=prune or app.prune, retries=retries, automated=app.automated, started=started)


def automatic(app: App, settings: Settings, last: Operation | None, revision: str, started: int) -> Part[Asked | str]:
    """The sync that begins by itself when the Application is looked at again; else why none does."""
    if not app.automated:
        return "automated sync is not enabled"
    if app.error:
        return app.error
    compared = yield from compare(app, settings)
    if not compared.out_of_sync:
        return "application status is Synced"
    if not app.prune and not compared.modified:
        return "need to prune extra resources only but automated prune is disabled"
    asked = requested(app, started=started)
    if last is not None and revision == app.revision:
        if last.phase != "Succeeded":
            return f"Failed last sync attempt to [{app.revision}]: {last.message}"
        if not app.self_heal:
            return f"most recent sync already to [{app.revision}]"
        asked = replace(asked, selected=(*compared.modified, *compared.extra))
    if app.prune and not app.allow_empty and not compared.wanted:
        return f"Skipping sync attempt to [{app.revision}]: auto-sync will wipe out all resources"
    return asked


def compare(app: App, settings: Settings) -> Part[Compared]:
    """What differs between an Application's source and the cluster. Hooks are not compared."""
    found = yield Survey()
    everything = {live_ref(body): body for body in found.body["items"]}
    targets, _ = wanted(app, settings)
    plain = [target for target in targets if not is_hook(target.body) and not is_skipped(target.body)]
    modified = []
    for target in plain:
        live = everything.get(target.ref)
        # What is a hook in the cluster is not compared, even where it is none in the source any more.
        if live is None or (not is_hook(live) and is_modified(target, live, app, settings)):
            modified.append(target.ref)
    known = {target.ref for target in targets}
    extra = [
        live_ref(body)
        for body in managed(everything.values(), app, settings)
        if live_ref(body) not in known and not is_hook(body) and speaks_of_itself(body, settings)
    ]
    hidden = [t.ref for t in targets if is_hook(t.body) and (b := everything.get(t.ref)) is not None and not is_hook(b)]
    return Compared(tuple(modified), tuple(sorted({*extra, *hidden})), len(plain))


def ended(tried: list[Tried]) -> Ended:
    """How a step ended: as badly as the worst of its operations."""
    operations = tuple(one.operation for one in tried)
    conditions = tuple(f"{o.app}: {words}" for o in operations for words in o.conditions)
    for one in tried:
        if one.stuck is not None:
            return Ended("hung", _blocked(one), conditions, one.stuck, operations)
    failed = [_named(one.operation, operations) for one in tried if one.operation.phase != "Succeeded"]
    if failed:
        return Ended("failed", "\n".join(failed), conditions, operations=operations)
    return Ended("ok", warnings=conditions, operations=operations)


def _named(operation: Operation, among: tuple[Operation, ...]) -> str:
    return f"{operation.app}: {operation.message}" if len(among) > 1 else operation.message


def _blocked(tried: Tried) -> str:
    """The message that stays for ever, why it does, and what it keeps from running."""
    operation, stuck = tried.operation, tried.stuck
    assert stuck is not None
    words = f"{operation.message}: {stuck.sentence}. Argo CD has no timeout for this"
    never = operation.never_ran()
    if not never:
        return words
    by_phase: dict[str, list[str]] = {}
    for phase, wave in never:
        by_phase.setdefault(phase, []).append(str(wave))
    told = " and ".join(
        f"{phase} wave{'s' if len(waves) > 1 else ''} {', '.join(waves)}" for phase, waves in by_phase.items()
    )
    return f"{words}; {told} never run{'s' if len(never) == 1 else ''}"
