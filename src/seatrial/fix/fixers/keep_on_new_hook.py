"""A regular resource that becomes a hook keeps its object with `resource-policy: keep` in the same upgrade.

Not in an earlier revision: the hook replaces that object before Helm reads the annotation from it.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.fix.lines import annotated
from seatrial.fix.named_templates import HelperLine, also_written, helper_line, with_line_below
from seatrial.fix.proposal import ByHand, Fixer, Problem, Proposal
from seatrial.helm import hooks
from seatrial.model.resource import annotations_of
from seatrial.phrases.outcome import first_named

KEEP = {hooks.RESOURCE_POLICY: "keep"}
BESIDE = (hooks.DELETE_POLICY, hooks.WEIGHT, hooks.HOOK)


def propose(problem: Problem) -> Iterator[Proposal]:
    ref = problem.finding.objects[0]
    resource = problem.newest(ref)
    if resource is None or not hooks.is_hook(resource.body) or hooks.RESOURCE_POLICY in annotations_of(resource.body):
        return
    title, change = f"add {hooks.RESOURCE_POLICY}: keep to {ref}", annotated(resource, KEEP, after=BESIDE)
    line = helper_line(resource, hooks.HOOK) if isinstance(change, ByHand) else None
    if not isinstance(line, HelperLine):
        yield Proposal(title, change)
        return
    others = also_written(problem, line, ref)
    unsafe = f"{line.name} also writes this of {first_named(others)}" if others else ""
    yield Proposal(title, with_line_below(line, f"{hooks.RESOURCE_POLICY}: keep"), unsafe)


FIXER = Fixer(("release-to-hook-flip",), propose)
