"""Whether a cluster is ready for a release, now: prerequisites, leftovers, admission, permissions. Changes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from seatrial.live import admitted, permissions
from seatrial.live.client import Client
from seatrial.live.leftovers import leftovers
from seatrial.live.placing import unplaceable
from seatrial.live.point import Point
from seatrial.live.prerequisites import prerequisites
from seatrial.model import lazy_re
from seatrial.model.refusal import Denial
from seatrial.model.release import Release
from seatrial.model.snapshot import Snapshot
from seatrial.plan.plan import Plan

HELM = "helm"
_WEBHOOK = lazy_re.compile(r'failed calling webhook "(?P<name>[^"]+)"')


class Preflight(Struct, frozen=True):
    prerequisites: tuple[Point, ...]
    leftovers: tuple[Point, ...]
    refused: tuple[Point, ...]
    """Objects that the API server does not admit."""
    missing: tuple[Denial, ...]
    """Permissions that the engine needs."""
    unread: tuple[Denial, ...]
    """Permissions that were missing to look at the cluster."""

    @property
    def points(self) -> tuple[Point, ...]:
        return *self.prerequisites, *self.leftovers, *self.refused

    @property
    def is_ready(self) -> bool:
        return not self.missing and all(point.state in ("ok", "note") for point in self.points)


def preflight(client: Client, snapshot: Snapshot, plans: Iterable[Plan]) -> Preflight:
    """All cases of the input are judged together: what one of them needs is needed."""
    wanted: list[Point] = []
    left: list[Point] = []
    refused: list[Point] = []
    denied: dict[Denial, None] = {}
    for plan in plans:
        releases = _deployed(plan)
        by_helm = plan.engine.name == HELM
        namespaces = {step.namespace for step in plan.steps if step.namespace}
        wanted += prerequisites(releases, sorted(namespaces), plan.created_namespaces, snapshot)
        wanted += unplaceable(releases, snapshot)
        left += leftovers(releases, plan.case.before, snapshot, by_helm=by_helm)
        refused += admitted.refused(client, releases, plan.created_namespaces, snapshot)
        denied |= dict.fromkeys(permissions.missing(client, releases, by_helm=by_helm))
    return Preflight(
        _once(wanted), _once(left), _once(_unreported(refused, left)), tuple(denied), tuple(snapshot.denied)
    )


def _deployed(plan: Plan) -> list[Release]:
    """The releases of the steps, each once."""
    return list({id(release): release for release in plan.case.releases if release is not None}.values())


def _unreported(refused: Iterable[Point], left: list[Point]) -> Iterator[Point]:
    """Refusals without those of webhooks that are already reported as leftovers."""
    known = [point.what for point in left if point.state == "fails"]
    for point in refused:
        called = _WEBHOOK.search(point.why)
        if called is None or not any(what.endswith(f"({called['name']})") for what in known):
            yield point


def _once(points: Iterable[Point]) -> tuple[Point, ...]:
    """Each object once, with the worst that was found."""
    found: dict[str, Point] = {}
    for point in points:
        known = found.get(point.what)
        if known is None or (known.state in ("ok", "note") and point.state not in ("ok", "note")):
            found[point.what] = point
    return tuple(found.values())
