"""Edits of a text that others have edited already, as edits of the text on disk. Reads and writes nothing."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from seatrial.fix.proposal import ByHand, Edits, TextEdit
from seatrial.text.source import Edit, Span, Text, edited


def rebased(edits: Edits, others: Sequence[TextEdit]) -> Edits | ByHand:
    """Edits of the texts that `others` lead to, as edits that can be applied together with them."""
    texts: dict[str, Text] = {}
    for one in others:
        texts.setdefault(one.text.path, one.text)
    done: list[TextEdit] = []
    for file in dict.fromkeys(one.text.path for one in edits):
        new = [one for one in edits if one.text.path == file]
        if file not in texts:
            done += new
            continue
        old = sorted({one.edit for one in others if one.text.path == file})
        moved = [_moved(one.edit, old) for one in new]
        both = [*old, *(one for one in moved if one is not None)]
        if None in moved or not _agree(texts[file], both, new):
            return ByHand(f"{file}: another fix changes the same lines")
        done += [replace(one, text=texts[file], edit=edit) for one, edit in zip(new, moved, strict=True) if edit]
    return tuple(done)


def _agree(text: Text, both: Sequence[Edit], new: Sequence[TextEdit]) -> bool:
    """Whether all edits together lead to the same text as one after the other."""
    try:
        together = edited(text, dict.fromkeys(both)).content
        return together == edited(new[0].text, dict.fromkeys(one.edit for one in new)).content
    except ValueError:
        return False


def _moved(edit: Edit, old: Sequence[Edit]) -> Edit | None:
    """An edit with offsets of the text before `old`; None if it begins or ends inside of what they wrote."""
    replaces = edit.span.end > edit.span.start
    start, end = _offset(edit.span.start, old, behind=replaces), _offset(edit.span.end, old)
    return None if start is None or end is None else Edit(Span(start, end), edit.new)


def _offset(now: int, old: Sequence[Edit], *, behind: bool = False) -> int | None:
    """`behind` chooses the end of what was removed there, instead of its start."""
    shift = 0
    for edit in old:
        start = edit.span.start + shift
        if now < start or (now == start and (edit.new or not behind)):
            break
        if now < start + len(edit.new):
            return None
        shift += len(edit.new) - (edit.span.end - edit.span.start)
    return now - shift
