"""A Kustomization that others depend on is Ready only when its objects are."""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.fix.lines import with_children, with_value
from seatrial.fix.proposal import Fixer, Problem, Proposal
from seatrial.model.release import Resource
from seatrial.model.resource import Pointer, dig

KUSTOMIZATION = "Kustomization"


def propose(problem: Problem) -> Iterator[Proposal]:
    resource = _pointed_at(problem)
    if resource is None or resource.ref.kind != KUSTOMIZATION:
        return
    given = dig(resource.body, "spec", "wait") is not None
    change = (
        with_value(resource, ("spec", "wait"), "true") if given else with_children(resource, ("spec",), ["wait: true"])
    )
    yield Proposal(f"set wait: true on {resource.ref}", change)


def _pointed_at(problem: Problem) -> Resource | None:
    """The object that the finding points at first: what the Kustomization depends on."""
    first = next(iter(problem.finding.pointers), None)
    if not isinstance(first, Pointer):
        return None
    return next((one for one in problem.case.all_resources() if one.origin == first.origin), None)


FIXER = Fixer(("flux-dependson-without-wait",), propose)
