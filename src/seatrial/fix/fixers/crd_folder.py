"""A CRD moves from the templates to crds/, which Helm installs before it resolves any kind."""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.fix.lines import document_of
from seatrial.fix.proposal import ByHand, Edits, Fixer, Problem, Proposal, TextEdit, joined
from seatrial.model.release import Resource
from seatrial.text.source import Edit, Span, Text

DEFINITION = "CustomResourceDefinition"
TEMPLATES = "/templates/"
HELM = "helm"
UNSAFE = "in an installed release the upgrade deletes it, unless it had helm.sh/resource-policy: keep before"


def propose(problem: Problem) -> Iterator[Proposal]:
    crds = [ref for ref in problem.finding.objects if ref.kind == DEFINITION]
    resources = [resource for ref in crds if (resource := problem.newest(ref))]
    inside = resources and all(TEMPLATES in resource.file for resource in resources)
    if not inside or problem.finding.action != "install" or problem.finding.engines[0].name != HELM:
        return
    more = f" and {len(resources) - 1} more" if len(resources) > 1 else ""
    yield Proposal(f"move {resources[0].ref}{more} to crds/", joined(*map(_moved, resources)), UNSAFE)


def _moved(resource: Resource) -> Edits | ByHand:
    found = document_of(resource)
    if isinstance(found, ByHand):
        return found
    text, span = found
    words = text.within(span)
    if "{{" in words:
        return ByHand(f"{text.path}: the CRD is not plain text, and crds/ has no templates")
    chart, _, name = text.path.rpartition(TEMPLATES)
    new = Text(
        f"{chart}/crds/{resource.ref.name}.yaml" if len(words) < len(text.content) else f"{chart}/crds/{name}", ""
    )
    return TextEdit(text, Edit(span, "")), TextEdit(new, Edit(Span(0, 0), words.lstrip("\n")))


FIXER = Fixer(("crd-and-cr-in-same-templates",), propose)
