"""Argo CD does not look up the kind of an object before its wave with `SkipDryRunOnMissingResource`."""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.fix.lines import annotated
from seatrial.fix.proposal import Fixer, Problem, Proposal, joined
from seatrial.helm.argocd_hooks import SYNC_OPTIONS, WAVE
from seatrial.model.release import Resource
from seatrial.model.resource import annotations_of

OPTION = "SkipDryRunOnMissingResource=true"
GENERATED = "operator-generated-crd-race"
ARGOCD = "argocd"


def propose(problem: Problem) -> Iterator[Proposal]:
    if any(engine.name != ARGOCD for engine in problem.finding.engines):
        return
    if problem.finding.rule == GENERATED:
        yield from _of_generated(problem)
        return
    resources = [resource for ref in problem.finding.objects if (resource := problem.newest(ref))]
    if not resources:
        return
    more = f" and {len(resources) - 1} more" if len(resources) > 1 else ""
    yield Proposal(
        f"add the sync option {OPTION} to {resources[0].ref}{more}",
        joined(*(annotated(resource, {SYNC_OPTIONS: _options(resource)}) for resource in resources)),
    )


def _of_generated(problem: Problem) -> Iterator[Proposal]:
    """An operator generates the CRD from another object: that must be in an earlier wave."""
    resource = problem.pointed_at()
    if resource is None:
        return
    option = {SYNC_OPTIONS: _options(resource)}
    title = f"add the sync option {OPTION} to {resource.ref}"
    if WAVE in annotations_of(resource.body):
        yield Proposal(title, annotated(resource, option))
    else:
        yield Proposal(f"{title}, in wave 1", annotated(resource, {WAVE: "1", **option}))


def _options(resource: Resource) -> str:
    now = str(annotations_of(resource.body).get(SYNC_OPTIONS) or "")
    return f"{now},{OPTION}" if now else OPTION


FIXER = Fixer(("argocd-dryrun-missing-crd", GENERATED), propose)
