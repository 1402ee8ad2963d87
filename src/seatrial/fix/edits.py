"""Edits as files with them, as patches, and as a fix lists them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from seatrial.fix.diff import diff_of
from seatrial.fix.proposal import Edits, TextEdit
from seatrial.model.finding import FileEdit, Fix
from seatrial.model.result import Patch
from seatrial.text.source import Text, edited

Texts = dict[str, str]


def texts_after(edits: Sequence[TextEdit]) -> Texts | None:
    """The files with these edits; None if two of them overlap."""
    try:
        return {patch.file: patch.after for patch in patched(edits, {})}
    except ValueError:
        return None


def patched(edits: Sequence[TextEdit], said: dict[str, list[str]]) -> Iterator[Patch]:
    texts: dict[str, Text] = {edit.text.path: edit.text for edit in edits}
    for file in sorted(texts):
        own = dict.fromkeys(edit.edit for edit in edits if edit.text.path == file)
        after = edited(texts[file], own).content
        yield Patch(file, texts[file].content, after, tuple(said.get(file, ())))


def with_edits(fix: Fix, edits: Edits) -> Fix:
    return replace(fix, edits=tuple(_file_edit(edit) for edit in edits), diff=diff_of(patched(edits, {})))


def _file_edit(one: TextEdit) -> FileEdit:
    text, span = one.text, one.edit.span
    start, end = (text.line(span.start), text.column(span.start)), (text.line(span.end), text.column(span.end))
    return FileEdit(text.path, *start, *end, one.edit.new)
