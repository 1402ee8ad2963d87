"""A regular resource that becomes a hook keeps its object with `resource-policy: keep` in the same upgrade.

Not in an earlier revision: the hook replaces that object before Helm reads the annotation from it.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.fix.lines import annotated
from seatrial.fix.proposal import Fixer, Problem, Proposal
from seatrial.helm import hooks
from seatrial.model.resource import annotations_of

KEEP = {hooks.RESOURCE_POLICY: "keep"}
BESIDE = (hooks.DELETE_POLICY, hooks.WEIGHT, hooks.HOOK)


def propose(problem: Problem) -> Iterator[Proposal]:
    ref = problem.finding.objects[0]
    resource = problem.newest(ref)
    if resource is None or not hooks.is_hook(resource.body) or hooks.RESOURCE_POLICY in annotations_of(resource.body):
        return
    yield Proposal(f"add {hooks.RESOURCE_POLICY}: keep to {ref}", annotated(resource, KEEP, after=BESIDE))


FIXER = Fixer(("release-to-hook-flip",), propose)
