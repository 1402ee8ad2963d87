"""Sentences about health checks for Argo CD, and where they are written."""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.moment import Moment, moments
from seatrial.model.release import Case, Resource, TriedHealthCheck
from seatrial.model.timeline import Rehearsal

INSTEAD = "seatrial generate health"


def configured(rehearsal: Rehearsal, case: Case) -> Iterator[tuple[Moment, Resource, TriedHealthCheck]]:
    """Each health check, at the first step whose release configures it."""
    for one in case.health_checks:
        for moment in moments(rehearsal, case):
            resource = moment.release.find(one.ref) if moment.release is not None else None
            if resource is not None:
                yield moment, resource, one
                break


def kind_of(one: TriedHealthCheck) -> str:
    """`Gate.canal.example`, as `seatrial generate health` takes it."""
    group, _, kind = one.about.rpartition("/")
    return f"{kind}.{group}" if group else kind
