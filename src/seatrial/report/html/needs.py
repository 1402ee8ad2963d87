"""The objects of a finding and what needs them, as a small graph. Built from what the timeline recorded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from seatrial.evidence.history import MADE_BY_ITSELF, MADE_BY_THE_CLUSTER
from seatrial.graph.linking import Link, graph_of
from seatrial.model.finding import Finding
from seatrial.model.release import Release, Resource
from seatrial.model.resource import Body, Origin, Ref, dig
from seatrial.model.timeline import Event, Rehearsal

NEEDS_MAX = 12
"""Needs of one finding that are shown; broken ones come first."""


class ShownNeed(Struct, frozen=True):
    user: Ref
    object: Ref
    why: str
    """`field`, `namespace`, `webhook`"""
    broken: bool
    """Whether the object is missing when the finding happens."""


def links_of(rehearsal: Rehearsal) -> tuple[Link, ...]:
    """What the objects of a rehearsal need, without those that controllers create."""
    bodies: dict[Ref, Body] = {}
    for event in rehearsal.timeline:
        if body := event.after or event.before:
            bodies[event.object] = body
    written = (
        ref for ref, body in bodies.items() if not dig(body, "metadata", "ownerReferences") and not _by_itself(ref)
    )
    resources = tuple(Resource(ref, bodies[ref], Origin("")) for ref in written)
    return graph_of([Release("", "", "", resources)]).links


def _by_itself(ref: Ref) -> bool:
    return ref.kind in MADE_BY_THE_CLUSTER or (
        ref.kind in ("ConfigMap", "ServiceAccount") and ref.name in MADE_BY_ITSELF
    )


def needs_around(
    finding: Finding, events: Iterable[Event], rehearsal: Rehearsal, links: Iterable[Link]
) -> list[ShownNeed]:
    """The needs of a finding's objects, and who needs them."""
    objects, missing = set(finding.objects), set(_missing(finding, events, rehearsal))
    found: dict[tuple[Ref, Ref], ShownNeed] = {}
    for link in links:
        broken = link.object in missing
        # Every object needs its namespace; that is worth a line only where it is missing.
        plain = link.why == "namespace" and not broken
        if not plain and not link.guess and (link.object in objects or link.user in objects):
            found.setdefault((link.user, link.object), ShownNeed(link.user, link.object, link.why, broken))
    return sorted(found.values(), key=lambda need: not need.broken)[:NEEDS_MAX]


def _missing(finding: Finding, events: Iterable[Event], rehearsal: Rehearsal) -> Iterator[Ref]:
    """What is missing: by a message, by the end of the step, or because the last event of the finding deletes it."""
    last: dict[Ref, Event] = {}
    for event in events:
        yield from event.missing
        last[event.object] = event
    yield from (ref for ref, event in last.items() if event.effect == "deleted")
    if 0 <= finding.step < len(rehearsal.steps):
        step = rehearsal.steps[finding.step]
        yield from (*step.missing, *step.lacking)
