"""An API version that Kubernetes, or a known operator, no longer serves is replaced by its successor."""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.fix.lines import with_value
from seatrial.fix.proposal import ByHand, Fixer, Problem, Proposal, joined
from seatrial.kinds.operators.table import operator_kinds, release_number
from seatrial.kinds.tables.removed import REMOVED
from seatrial.model.release import Resource
from seatrial.model.resource import group_of, version_of


def propose(problem: Problem) -> Iterator[Proposal]:
    found = (problem.newest(ref) for ref in problem.finding.objects)
    instead = [(resource, version) for resource in found if resource and (version := _successor(resource))]
    if not instead or len(instead) != len(problem.finding.objects):
        return
    alike = [one for one in _alike(problem, instead[0][0]) if one not in instead]
    if alike:
        yield _proposal([*instead, *alike])
    yield _proposal(instead)


def _proposal(instead: list[tuple[Resource, str]]) -> Proposal:
    versions = ", ".join(dict.fromkeys(version for _, version in instead))
    objects = str(instead[0][0].ref) if len(instead) == 1 else f"{len(instead)} objects"
    return Proposal(
        f"use {versions} for {objects}",
        joined(*(with_value(resource, ("apiVersion",), version) for resource, version in instead)),
    )


def _alike(problem: Problem, first: Resource) -> Iterator[tuple[Resource, str]]:
    """Other objects of the release in a version of the same group that is not served either."""
    for one in problem.release_of(first).resources:
        version = _successor(one) if one.ref.group == first.ref.group else ""
        if version and not isinstance(with_value(one, ("apiVersion",), version), ByHand):
            yield one, version


def _successor(resource: Resource) -> str:
    now = str(resource.body.get("apiVersion", ""))
    if removal := REMOVED.get((group_of(now), version_of(now), resource.ref.kind)):
        return removal.replacement
    operator, kind = operator_kinds().get((resource.ref.group, resource.ref.kind), (None, None))
    if operator is None or kind is None:
        return ""
    newest = release_number("", operator)
    served = kind.served(newest)
    return f"{kind.group}/{kind.stored(newest)}" if served and version_of(now) not in served else ""


FIXER = Fixer(("removed-api-version", "third-party-crd-absent"), propose)
