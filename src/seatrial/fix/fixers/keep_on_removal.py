"""What `helm uninstall` deletes with its data stays with `resource-policy: keep`."""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.fix.lines import annotated
from seatrial.fix.proposal import Fixer, Problem, Proposal, joined
from seatrial.helm import hooks

HELM = "helm"
KINDS = ("PersistentVolumeClaim", "CustomResourceDefinition", "Namespace")


def propose(problem: Problem) -> Iterator[Proposal]:
    kept = [ref for ref in problem.finding.objects if ref.kind in KINDS]
    resources = [resource for ref in kept if (resource := problem.newest(ref))]
    if any(engine.name != HELM for engine in problem.finding.engines):
        return  # Others do not read the annotation.
    if not resources or any(hooks.is_hook(resource.body) for resource in resources):
        return
    more = f" and {len(resources) - 1} more" if len(resources) > 1 else ""
    yield Proposal(
        f"add {hooks.RESOURCE_POLICY}: keep to {resources[0].ref}{more}",
        joined(*(annotated(resource, {hooks.RESOURCE_POLICY: "keep"}) for resource in resources)),
        why_unsafe="uninstalling leaves it in the cluster, and deleting it is then up to you",
    )


FIXER = Fixer(
    ("release-pvc-deleted-on-uninstall", "crd-in-templates-deleted-on-uninstall", "chart-owned-namespace-deleted"),
    propose,
)
