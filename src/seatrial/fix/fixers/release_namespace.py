"""The namespace that a chart is installed into is left out of the release; others of the same template stay."""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.fix.expressions import SCALAR, contexts, expression_of
from seatrial.fix.lines import document_of, key_line
from seatrial.fix.proposal import ByHand, Edits, Fixer, Problem, Proposal, TextEdit
from seatrial.helm import hooks
from seatrial.model.release import Resource
from seatrial.text.source import Edit, Span

ROOT = ".Release.Namespace"
UNSAFE = "an installed release deletes the namespace, unless it had helm.sh/resource-policy: keep before"


def propose(problem: Problem) -> Iterator[Proposal]:
    namespace = problem.newest(problem.finding.objects[0])
    if namespace is None or not problem.release_of(namespace).chart:
        return
    unsafe = "" if hooks.is_hook(namespace.body) else UNSAFE
    yield Proposal(f"leave {namespace.ref} out where it is the release namespace", _left_out(namespace), unsafe)


def _left_out(namespace: Resource) -> Edits | ByHand:
    name, document = key_line(namespace, "metadata", "name"), document_of(namespace)
    if isinstance(name, ByHand):
        return name
    if isinstance(document, ByHand):
        return document
    text, span = document
    written = SCALAR.fullmatch(name.rest)
    if written is None or not span.start <= name.start < span.end:
        return ByHand(f"{name.text.path}:{name.number} does not have the name in one line")
    own = expression_of(written["name"])
    if own in (ROOT, f"${ROOT}"):
        return (TextEdit(text, Edit(span, "")),)
    root = f"${ROOT}" if contexts(name) else ROOT
    return (
        TextEdit(text, Edit(Span(span.start, span.start), f"{{{{- if ne {own} {root} }}}}\n")),
        TextEdit(text, Edit(Span(span.end, span.end), "{{- end }}\n")),
    )


FIXER = Fixer(("release-namespace-inside-chart",), propose)
