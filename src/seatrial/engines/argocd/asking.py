"""The options of a sync operation: from the Application's policy, the flags of `argocd app sync`, or an `operation`."""

from __future__ import annotations

from msgspec.structs import replace

from seatrial.engines.argocd import versions
from seatrial.engines.argocd.app import AUTOMATED_RETRIES, App, Settings, SyncOptions
from seatrial.model.errors import CannotContinue
from seatrial.model.resource import Ref, dig, listed

OPTIONS = {
    "--replace": "Replace=true",
    "--server-side": "ServerSideApply=true",
    "--apply-out-of-sync-only": "ApplyOutOfSyncOnly=true",
}
VALUED = ("--resource", "--retry-limit", "--strategy")
KNOWN = ("--prune", "--force", *OPTIONS, *(f"{flag}=..." for flag in VALUED))


def requested(app: App, flags: tuple[str, ...] = (), started: int = 0) -> SyncOptions:
    """A requested sync, with the Application's own prune and retries if it is automated."""
    limit = AUTOMATED_RETRIES if app.automated else 0
    retries = limit if app.retries is None else app.retries
    asked = SyncOptions(prune=app.prune, retries=retries, automated=app.automated, started=started)
    for flag in flags:
        asked = _with_flag(asked, flag, app)
    return asked


def by_hand(app: App, started: int) -> SyncOptions:
    """An `operation` that somebody writes into the Application: only what it says counts, not the sync policy."""
    sync, limit = dig(app.operation, "sync"), dig(app.operation, "retry", "limit")
    return SyncOptions(
        prune=bool(dig(sync, "prune")),
        skips_hooks=dig(sync, "syncStrategy", "apply") is not None,
        force=any(dig(sync, "syncStrategy", kind, "force") is True for kind in ("apply", "hook")),
        dry_run=bool(dig(sync, "dryRun")),
        options=tuple(map(str, listed(app.operation, "sync", "syncOptions"))),
        retries=limit if isinstance(limit, int) else 0,
        started=started,
    )


def of_rollout(app: App, settings: Settings, started: int) -> SyncOptions:
    """A sync that the ApplicationSet controller starts: `syncApplication` in applicationset/progressivesync."""
    limit = AUTOMATED_RETRIES if versions.has(settings.version, "rollouts retry") else 0
    retries = limit if app.retries is None else app.retries
    return SyncOptions(prune=app.prune, retries=retries, automated=True, started=started)


def _with_flag(asked: SyncOptions, flag: str, app: App) -> SyncOptions:
    name, _, value = flag.replace(" ", "=", 1).partition("=")
    match name:
        case "--prune":
            return replace(asked, prune=value != "false")
        case "--force":
            return replace(asked, force=True)
        case "--strategy" if value in ("apply", "hook"):
            return replace(asked, skips_hooks=value == "apply")
        case "--retry-limit" if value.lstrip("-").isdecimal():
            return replace(asked, retries=int(value), retries_given=int(value) >= 0)
        case "--resource":
            return replace(asked, selected=(*asked.selected, *_selected(value, app)))
    if name in OPTIONS and not value:
        return replace(asked, options=(*asked.options, OPTIONS[name]))
    raise CannotContinue(f"step sync: the flag {flag} cannot be rehearsed; known are {', '.join(KNOWN)}")


def _selected(value: str, app: App) -> tuple[Ref, ...]:
    """`GROUP:KIND:NAME`, or `GROUP:KIND:NAMESPACE/NAME`."""
    group, _, rest = value.partition(":")
    kind, _, place = rest.partition(":")
    namespace, _, name = place.rpartition("/")
    found = tuple(
        target.ref
        for target in app.targets
        if (target.ref.group, target.ref.kind, target.ref.name) == (group, kind, name)
        and namespace in ("", target.ref.namespace)
    )
    if not found:
        raise CannotContinue(f"step sync: --resource={value}: the Application {app.name} has no such object")
    return found
