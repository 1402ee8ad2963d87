"""A second object beside the first, from the same text: with another name and with annotations of its own."""

from __future__ import annotations

from seatrial.fix.lines import annotated, key_line, with_suffix
from seatrial.fix.proposal import ByHand, Edits, TextEdit, joined
from seatrial.model.release import Resource
from seatrial.sources.charts.gotemplate import open_blocks
from seatrial.text.source import Edit, Span, Text, edited


def copied(resource: Resource, suffix: str, annotations: dict[str, str]) -> Edits | ByHand:
    """The document of an object once more, below it and under the same conditions."""
    first, kind = key_line(resource, "apiVersion"), key_line(resource, "kind")
    if isinstance(first, ByHand):
        return first
    if isinstance(kind, ByHand):
        return kind
    changes = joined(with_suffix(resource, ("metadata", "name"), suffix), annotated(resource, annotations))
    if isinstance(changes, ByHand):
        return changes
    span = _document(first.text, min(first.number, kind.number))
    if span is None or any(not span.start <= one.edit.span.start <= span.end for one in changes):
        return ByHand(f"{first.text.path}:{first.number}: where the object ends is not certain")
    moved = [Edit(Span(e.span.start - span.start, e.span.end - span.start), e.new) for e in (c.edit for c in changes)]
    text = edited(Text(first.text.path, first.text.within(span)), moved).content.rstrip("\n")
    before = "" if first.text.within(span).endswith("\n") else "\n"
    return (TextEdit(first.text, Edit(Span(span.end, span.end), f"{before}---\n{text}\n")),)


def _document(text: Text, first: int) -> Span | None:
    """From a line to the next document, or to the end of the block of the template that contains it."""
    start, number = text.start_of(first), first
    blocks = open_blocks(text.content, start)
    lines = text.content.count("\n") + 1
    while number <= lines:
        after = open_blocks(text.content, text.start_of(number + 1))
        if text.line_at(number).startswith("---") or len(after) < len(blocks):
            break
        number += 1
    end = text.start_of(number)
    return Span(start, end) if open_blocks(text.content, end) == blocks and end > start else None
