"""A Kustomization that others depend on is Ready only when its objects are: the first that the finding points at."""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.fix.fixers.flux_depends_on import KUSTOMIZATION, waiting
from seatrial.fix.proposal import Fixer, Problem, Proposal


def propose(problem: Problem) -> Iterator[Proposal]:
    resource = problem.pointed_at()
    if resource is not None and resource.ref.kind == KUSTOMIZATION:
        yield Proposal(f"set wait: true on {resource.ref}", waiting(resource))


FIXER = Fixer(("flux-dependson-without-wait",), propose)
