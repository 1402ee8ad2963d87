"""How many pods a release wants. Each is rehearsed, so that a million of them would never end."""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.model.errors import CannotContinue
from seatrial.model.release import Resource
from seatrial.model.resource import dig
from seatrial.plan.plan import Plan

PODS_MAX = 2_000
FIELDS = ("replicas", "parallelism", "minReplicas")


def refuse_crowds(plans: Iterator[Plan]) -> Iterator[Plan]:
    for plan in plans:
        for release in filter(None, plan.case.releases):
            crowds = [(count, one) for one in release.resources if (count := _pods(one))]
            if sum(count for count, _ in crowds) > PODS_MAX:
                count, largest = max(crowds, key=lambda crowd: crowd[0])
                raise CannotContinue(
                    f"{largest.ref}: wants {count} pods; a rehearsal has at most {PODS_MAX}. Set fewer replicas"
                )
        yield plan


def _pods(resource: Resource) -> int:
    counts = (dig(resource.body, "spec", field) for field in FIELDS)
    return max((count for count in counts if isinstance(count, int)), default=0)
