"""Helm hooks that Argo CD runs where Helm would not: it has no installs and no upgrades, only syncs."""

from __future__ import annotations

from seatrial.helm import argocd_hooks, hooks
from seatrial.model.release import Resource
from seatrial.model.resource import Ref, annotations_of
from seatrial.model.timeline import Event

RUNS = ("Job", "Pod")
AT_INSTALL = {"pre-install", "post-install"}
AT_UPGRADE = {"pre-upgrade", "post-upgrade"}


def is_unmeant(resource: Resource, *, again: bool) -> bool:
    """Whether Helm would not run the hook here: an install hook in a later sync, or an upgrade hook in the first."""
    if resource.ref.kind not in RUNS or argocd_hooks.HOOK in annotations_of(resource.body):
        return False
    events = set(hooks.events_of(resource.body))
    there, not_here = (AT_INSTALL, AT_UPGRADE) if again else (AT_UPGRADE, AT_INSTALL)
    return bool(events & there) and not events & not_here


def creates_again(event: Event, hook: Ref) -> bool:
    """Whether the script of a hook creates what is there already."""
    exists = event.refusal is not None and event.refusal.reason == "AlreadyExists"
    return exists and event.effect == "refused" and event.actor == f"{hook.kind.lower()}/{hook.name}"
