"""Where a missing object would come from: an image from a build, its Secret from an operator, and so on."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from seatrial.evidence.described import products
from seatrial.evidence.moment import Moment
from seatrial.graph import needs_of
from seatrial.model.release import Resource
from seatrial.model.resource import Ref

LINKS_MAX = 8


class ProducerLink(Struct, frozen=True):
    """A missing object, and the object it would be produced from."""

    missing: Ref
    producer: Ref | None = None
    is_there: bool = False
    """Whether the producer exists."""


def chain(moment: Moment, ref: Ref) -> list[ProducerLink]:
    """From a missing object to the first one that has no producer, or whose producer is missing or blocked."""
    found: list[ProducerLink] = []
    missing: Ref | None = ref
    while missing is not None and len(found) < LINKS_MAX and missing not in [link.missing for link in found]:
        producer = next((r for r in moment.case.all_resources() if missing in products(moment.case, r)), None)
        there = producer is not None and moment.live(producer.ref) is not None
        found.append(ProducerLink(missing, producer.ref if producer else None, there))
        missing = next(_lacks(moment, producer), None) if producer and there else None
    return found


def in_words(links: list[ProducerLink]) -> str:
    """`ImageStreamTag/default/app:1, produced from BuildConfig/default/app, which lacks Secret/default/git, ...`"""
    said = [_phrase(link) for link in links]
    end = links[-1]
    if end.producer is None:
        last = "which nothing in the trial creates"
    else:
        last = "which exists and produces nothing" if end.is_there else "which does not exist"
    return ", which lacks ".join(said) + f", {last}"


def _phrase(link: ProducerLink) -> str:
    return f"{link.missing}, produced from {link.producer}" if link.producer else str(link.missing)


def _lacks(moment: Moment, producer: Resource) -> Iterator[Ref]:
    for need in needs_of(producer):
        if not need.optional and not need.guess and moment.live(need.object) is None:
            yield need.object
