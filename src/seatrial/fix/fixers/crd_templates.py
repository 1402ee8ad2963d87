"""A CRD moves from crds/ to the templates, with which Helm upgrades it. `keep` protects it and its custom resources.

Not if the chart has a custom resource of it: Helm resolves every kind before it creates the CRD.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.fix.lines import annotated, document_of
from seatrial.fix.proposal import ByHand, Edits, Fixer, Problem, Proposal, TextEdit, joined
from seatrial.helm import hooks
from seatrial.model.release import Resource
from seatrial.model.resource import dig
from seatrial.sources import text_of
from seatrial.text.source import Edit, Span, Text, edited

DEFINITION = "CustomResourceDefinition"
CRDS, TEMPLATES = "/crds/", "/templates/"
HELM = "helm"
ADOPTION = "an installed release must adopt it once (helm upgrade --take-ownership), and not roll back behind that"


def propose(problem: Problem) -> Iterator[Proposal]:
    refs = problem.finding.objects
    found = [one for ref in refs if ref.kind == DEFINITION and (one := problem.newest(ref))]
    if any(engine.name != HELM for engine in problem.finding.engines) or len(found) != len(refs):
        return  # Custom resources of the chart are objects of the finding.
    if not found or any(CRDS not in one.file or _is_used(problem, one) for one in found):
        return
    more = f" and {len(found) - 1} more" if len(found) > 1 else ""
    yield Proposal(
        f"move {found[0].ref}{more} to the templates, with {hooks.RESOURCE_POLICY}: keep",
        joined(*map(_moved, found)),
        ADOPTION,
        flags=("--take-ownership",),
    )


def _is_used(problem: Problem, definition: Resource) -> bool:
    spec = definition.body.get("spec") or {}
    kind = (spec.get("group"), dig(spec, "names", "kind"))
    return any((one.ref.group, one.ref.kind) == kind for one in problem.release_of(definition).resources)


def _moved(resource: Resource) -> Edits | ByHand:
    found, kept = document_of(resource), annotated(resource, {hooks.RESOURCE_POLICY: "keep"})
    if isinstance(found, ByHand):
        return found
    if isinstance(kept, ByHand):
        return kept
    text, span = found
    inner = [Edit(Span(e.span.start - span.start, e.span.end - span.start), e.new) for e in (one.edit for one in kept)]
    words = edited(Text(text.path, text.within(span)), inner).content
    if "{{" in words:
        return ByHand(f"{text.path}: the CRD contains {{{{, which has to be quoted in a template")
    chart, _, name = text.path.rpartition(CRDS)
    whole = text.content[: span.start].strip("-\n ") == "" and text.content[span.end :].strip() == ""
    new = f"{chart}{TEMPLATES}{name if whole else f'{resource.ref.name}.yaml'}"
    if text_of(new) is not None:
        return ByHand(f"{new} exists")
    gone = Span(0, len(text.content)) if whole else span
    return TextEdit(text, Edit(gone, "")), TextEdit(Text(new, ""), Edit(Span(0, 0), words.lstrip("\n")))


FIXER = Fixer(("crds-dir-not-upgraded",), propose)
