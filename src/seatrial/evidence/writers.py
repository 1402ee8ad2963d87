"""Who wrote an object last: a release, or a user without one. Controllers do not count."""

from __future__ import annotations

from seatrial.evidence.argocd.syncs import is_argocd
from seatrial.evidence.flux.reconciliations import is_flux
from seatrial.evidence.pulumi.programs import is_pulumi
from seatrial.model.timeline import Event, Rehearsal

PROVIDER = "kubernetes"
"""Creates what is assumed: before the first step, or as soon as its namespace exists."""
BESIDE = ("user", PROVIDER)
"""Actors beside the engine that are not controllers."""
WROTE = ("created", "changed")


def writes_in_order(rehearsal: Rehearsal) -> bool:
    """Whether the engine writes one object after the other in one pass: Helm and kubectl."""
    return not (is_argocd(rehearsal) or is_flux(rehearsal) or is_pulumi(rehearsal))


def wrote_before(rehearsal: Rehearsal, event: Event) -> Event | None:
    """The last deliberate write of the same object before an event."""
    earlier = reversed(rehearsal.timeline[: event.index])
    return next((e for e in earlier if e.object == event.object and is_written(rehearsal, e)), None)


def is_written(rehearsal: Rehearsal, event: Event) -> bool:
    """Whether a client, not a controller, wrote the object."""
    return event.effect in WROTE and event.actor in (*rehearsal.actors, *BESIDE)


def writer_of(rehearsal: Rehearsal, event: Event) -> tuple[str, str, str]:
    """The writer: (release, namespace, "") or ("", "", source) for a user who applied a file."""
    if event.step < 0 or event.actor == PROVIDER:
        return "", "", ""
    ended = rehearsal.steps[event.step]
    return ended.release, ended.namespace, "" if ended.release else ended.source
