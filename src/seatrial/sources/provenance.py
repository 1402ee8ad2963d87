"""Where rendered text was written: the line of its template, and how sure that is. Renders nothing itself.

A copy of the template is rendered, with a mark before every piece of its text and every action that gives text. Taken
out again, the marks must leave what the template itself gave; then each says where what follows it was written. Marks
stand only in text that goes straight to the output, so they change nothing that the template could look at.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

from seatrial.resource import Sure
from seatrial.text import Edit, Span, Text, edited

Writer = Literal["text", "value", "call"]
"""What wrote a piece: the template's own text, the value of an action, or something that an action called."""

# An action of a Go template: whether it trims the text before it, what it says, whether it trims the text after it.
_ACTION = re.compile(
    r"\{\{(?P<before>-(?=\s))?"
    r"(?P<says>\s*/\*.*?\*/\s*?|(?:[^\"`'}]|\"(?:\\.|[^\"\\])*\"|`[^`]*`|'(?:\\.|[^'\\])*'|\}(?!\}))*?)"
    r"(?P<after>(?<=\s)-)?\}\}",
    re.DOTALL,
)
_SILENT = re.compile(r"/\*|\$\w*(\s*,\s*\$\w+)?\s*:?=[^=]|(if|else|range|with|end|define|break|continue|fail)\b")
_OPENS = re.compile(r"(if|range|with|define|block)\b")
_CALLS = re.compile(r"\b(include|template|block|tpl|toYaml|toYamlPretty|nindent|indent|Files)\b")
_ENDS = re.compile(r"end\b")
_LINE = re.compile(r"[^\n]*\n?")
_SPACE = " \t\r\n"

_MARK = "\ue000{line} {writer}\ue001"
_MARKED = re.compile(r"\ue000(\d+) (\w+)\ue001")
_RESERVED = ("\ue000", "\ue001")


class Origin(Struct, frozen=True):
    line: int
    sure: Sure


class Provenance(Struct, frozen=True):
    """The origin of every character of one rendered file."""

    rendered: Text
    shadow: Text
    """What the copy gave, without its marks: the same text, unless the template makes things up as it goes."""
    offsets: tuple[int, ...] = ()
    """Where in the shadow each piece begins."""
    lines: tuple[int, ...] = ()
    writers: tuple[str, ...] = ()

    def at(self, offset: int) -> Origin:
        """The origin of the character at `offset` of the rendered text."""
        if not self.offsets:
            return Origin(1, "file")
        found, same = self._in_shadow(offset)
        piece = bisect_right(self.offsets, found) - 1
        if piece < 0:
            return Origin(1, "file")
        return Origin(self.lines[piece], "exact" if same and self._wrote_one_line(piece) else "near")

    def _in_shadow(self, offset: int) -> tuple[int, bool]:
        """The same character of the shadow, and whether its line reads the same there."""
        if self.rendered.content == self.shadow.content:
            return offset, True
        line = self.rendered.line(offset)
        other = self.shadow.content.count("\n") - self.rendered.content.count("\n")
        same_above = self.rendered.line_at(line) == self.shadow.line_at(line)
        there = line if other == 0 or same_above else line + other
        text = self.shadow.line_at(max(there, 1))
        same = text == self.rendered.line_at(line)
        column = self.rendered.column(offset) - 1 if same else len(text) - len(text.lstrip())
        return self.shadow.start_of(max(there, 1)) + column, same and other == 0

    def _wrote_one_line(self, piece: int) -> bool:
        if self.writers[piece] != "value":
            return self.writers[piece] == "text"
        end = self.offsets[piece + 1] if piece + 1 < len(self.offsets) else len(self.shadow.content)
        return "\n" not in self.shadow.content[self.offsets[piece] : end].strip()


def marked(template: Text) -> Text | None:
    """The template with its marks; None where it uses the very characters that marks are made of."""
    if any(character in template.content for character in _RESERVED):
        return None
    marks = (
        Edit(Span(offset, offset), _MARK.format(line=template.line(at), writer=writer))
        for offset, at, writer in _marks(template.content)
    )
    return edited(template, marks)


def provenance(rendered: Text, marked_rendering: str | None) -> Provenance:
    """`marked_rendering` is what the marked template gave; None where it gave nothing."""
    parts = _MARKED.split(marked_rendering or "")
    clean: list[str] = [parts[0]]
    offsets: list[int] = []
    length = len(parts[0])
    for text in parts[3::3]:
        offsets.append(length)
        clean.append(text)
        length += len(text)
    shadow = Text(rendered.path, "".join(clean))
    return Provenance(rendered, shadow, tuple(offsets), tuple(map(int, parts[1::3])), tuple(parts[2::3]))


def _marks(content: str) -> Iterator[tuple[int, int, Writer]]:
    """Where to put each mark, the character whose line it tells, and who writes there."""
    inside: list[str] = []
    start = 0
    for action in _ACTION.finditer(content):
        says = action["says"].strip()
        text = content[start : action.start()]
        end = start + len(text.rstrip(_SPACE) if action["before"] else text)
        if not {"define", "block"} & set(inside):
            yield from _text_marks(content, start, end)
            if says and not _SILENT.match(says):
                yield end, action.start(), "call" if _CALLS.search(says) else "value"
        if opens := _OPENS.match(says):
            inside.append(opens[1])
        elif _ENDS.match(says) and inside:
            inside.pop()
        start = action.end()
    yield from _text_marks(content, start, len(content))


def _text_marks(content: str, start: int, end: int) -> Iterator[tuple[int, int, Writer]]:
    """A mark before the first character of each line that is no space: spaces may be trimmed, and must be as before."""
    for line in _LINE.finditer(content, start, end):
        if words := line[0].lstrip(_SPACE):
            at = line.end() - len(words)
            yield at, at, "text"
