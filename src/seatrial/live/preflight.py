"""Whether a cluster is ready for a release, now: prerequisites, leftovers and permissions. Reads only."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from seatrial.live import permissions
from seatrial.live.client import Client
from seatrial.live.leftovers import leftovers
from seatrial.live.point import Point
from seatrial.live.prerequisites import prerequisites
from seatrial.model.refusal import Denial
from seatrial.model.release import Release
from seatrial.model.snapshot import Snapshot
from seatrial.plan.plan import Plan

HELM = "helm"


class Preflight(Struct, frozen=True):
    prerequisites: tuple[Point, ...]
    leftovers: tuple[Point, ...]
    missing: tuple[Denial, ...]
    """Permissions that the engine needs."""
    unread: tuple[Denial, ...]
    """Permissions that were missing to look at the cluster."""

    @property
    def is_ready(self) -> bool:
        points = (*self.prerequisites, *self.leftovers)
        return not self.missing and all(point.state in ("ok", "note") for point in points)


def preflight(client: Client, snapshot: Snapshot, plans: Iterable[Plan]) -> Preflight:
    """All cases of the input are judged together: what one of them needs is needed."""
    wanted: list[Point] = []
    left: list[Point] = []
    denied: dict[Denial, None] = {}
    for plan in plans:
        releases = _deployed(plan)
        by_helm = plan.engine.name == HELM
        namespaces = {step.namespace for step in plan.steps if step.namespace}
        wanted += prerequisites(releases, sorted(namespaces), plan.created_namespaces, snapshot)
        left += leftovers(releases, plan.case.before, snapshot, by_helm=by_helm)
        denied |= dict.fromkeys(permissions.missing(client, releases, by_helm=by_helm))
    return Preflight(_once(wanted), _once(left), tuple(denied), tuple(snapshot.denied))


def _deployed(plan: Plan) -> list[Release]:
    """The releases of the steps, each once."""
    return list({id(release): release for release in plan.case.releases if release is not None}.values())


def _once(points: Iterable[Point]) -> tuple[Point, ...]:
    """Each object once, with the worst that was found."""
    found: dict[str, Point] = {}
    for point in points:
        known = found.get(point.what)
        if known is None or (known.state in ("ok", "note") and point.state not in ("ok", "note")):
            found[point.what] = point
    return tuple(found.values())
