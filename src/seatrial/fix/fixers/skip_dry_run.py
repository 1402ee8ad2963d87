"""Argo CD does not look up the kind of an object before its wave with `SkipDryRunOnMissingResource`."""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.fix.lines import annotated
from seatrial.fix.proposal import Fixer, Problem, Proposal, joined
from seatrial.helm.argocd_hooks import SYNC_OPTIONS
from seatrial.model.release import Resource
from seatrial.model.resource import annotations_of

OPTION = "SkipDryRunOnMissingResource=true"


def propose(problem: Problem) -> Iterator[Proposal]:
    resources = [resource for ref in problem.finding.objects if (resource := problem.newest(ref))]
    if not resources:
        return
    more = f" and {len(resources) - 1} more" if len(resources) > 1 else ""
    yield Proposal(
        f"add the sync option {OPTION} to {resources[0].ref}{more}",
        joined(*(annotated(resource, {SYNC_OPTIONS: _options(resource)}) for resource in resources)),
    )


def _options(resource: Resource) -> str:
    now = str(annotations_of(resource.body).get(SYNC_OPTIONS) or "")
    return f"{now},{OPTION}" if now else OPTION


FIXER = Fixer(("argocd-dryrun-missing-crd",), propose)
