"""A second object beside the first, from the same text: with another name and with annotations of its own."""

from __future__ import annotations

from seatrial.fix.lines import annotated, document_of, with_suffix
from seatrial.fix.proposal import ByHand, Edits, TextEdit, joined
from seatrial.model.release import Resource
from seatrial.text.source import Edit, Span, Text, edited


def copied(resource: Resource, suffix: str, annotations: dict[str, str]) -> Edits | ByHand:
    """The document of an object once more, below it and under the same conditions."""
    found = document_of(resource)
    if isinstance(found, ByHand):
        return found
    text, span = found
    changes = joined(with_suffix(resource, ("metadata", "name"), suffix), annotated(resource, annotations))
    if isinstance(changes, ByHand):
        return changes
    if any(not span.start <= one.edit.span.start <= span.end for one in changes):
        return ByHand(f"{text.path}: a named template writes a part of {resource.ref}")
    moved = [Edit(Span(e.span.start - span.start, e.span.end - span.start), e.new) for e in (c.edit for c in changes)]
    copy = edited(Text(text.path, text.within(span)), moved).content.rstrip("\n")
    before = "" if text.within(span).endswith("\n") else "\n"
    return (TextEdit(text, Edit(Span(span.end, span.end), f"{before}---\n{copy}\n")),)
