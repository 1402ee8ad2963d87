"""A Job whose template changes gets a new name with every revision: Helm then replaces the old Job."""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.fix.lines import with_suffix
from seatrial.fix.proposal import Fixer, Problem, Proposal

REVISION = "-{{ .Release.Revision }}"
HELM = "helm"
"""Other engines render every revision as the first one."""


def propose(problem: Problem) -> Iterator[Proposal]:
    ref = problem.finding.objects[0]
    resource = problem.newest(ref)
    charts = resource is not None and bool(problem.release_of(resource).chart)
    if resource is None or not charts or any(engine.name != HELM for engine in problem.finding.engines):
        return
    yield Proposal(
        f"append the revision to the name of {ref}",
        with_suffix(resource, ("metadata", "name"), REVISION),
        why_unsafe="the Job runs at every upgrade, also if it has not changed",
    )


FIXER = Fixer(("job-immutable-template",), propose)
