"""Text files and places in them. Knows nothing of YAML or Kubernetes."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from functools import cached_property

from msgspec import Struct


class Span(Struct, frozen=True, order=True):
    """Characters of a text, from `start` up to but not including `end`."""

    start: int
    end: int


class Edit(Struct, frozen=True, order=True):
    """Put `new` where `span` is; an empty span inserts."""

    span: Span
    new: str


class Text(Struct, frozen=True, dict=True):
    """A file as it was read, with its line endings. `path` is the path as the user typed it."""

    path: str
    content: str

    def line(self, offset: int) -> int:
        """The line, from 1, that contains the character at `offset`."""
        return bisect_right(self._starts, offset)

    def column(self, offset: int) -> int:
        """The column, from 1, of the character at `offset`."""
        return offset - self._starts[self.line(offset) - 1] + 1

    def start_of(self, line: int) -> int:
        """The offset of the first character of `line`, or of the end of the text if there is no such line."""
        return self._starts[line - 1] if line <= len(self._starts) else len(self.content)

    def line_at(self, line: int) -> str:
        """One line, without its ending."""
        return self.content[self.start_of(line) : self.start_of(line + 1)].rstrip("\r\n")

    def within(self, span: Span) -> str:
        return self.content[span.start : span.end]

    @cached_property
    def _starts(self) -> list[int]:
        starts = [0]
        offset = self.content.find("\n")
        while offset >= 0:
            starts.append(offset + 1)
            offset = self.content.find("\n", offset + 1)
        return starts


def edited(text: Text, edits: Iterable[Edit]) -> Text:
    """The text with every edit applied. Offsets refer to the original text. Edits must not overlap."""
    parts: list[str] = []
    done = 0
    for edit in sorted(edits):
        start, end = edit.span.start, edit.span.end
        if not done <= start <= end <= len(text.content):
            raise ValueError(f"{text.path}: an edit of characters {start} to {end} overlaps another or leaves the text")
        parts += (text.content[done:start], edit.new)
        done = end
    return Text(text.path, "".join((*parts, text.content[done:])))
