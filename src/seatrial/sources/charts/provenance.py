"""The template line of each part of the rendered text, and how certain it is. Renders nothing itself.

A copy of each template is rendered with a mark before every piece of text and every action that writes text. With the
marks removed, the output must equal that of the original template; then each mark gives the source line of the text
after it. Marks are only in text that goes straight to the output, so no template can observe them. The same holds for
a named template that an action only writes out: there, the copy calls a marked copy.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

from msgspec import Struct

from seatrial.model import lazy_re
from seatrial.model.resource import Place
from seatrial.sources.charts.gotemplate import Definition, TemplatePiece, definitions, pieces
from seatrial.text.source import Edit, Span, Text, edited

Writer = Literal["text", "value", "call"]
"""The origin of a piece: text of the template, the value of an action, or a template that an action calls."""

_CALLS = lazy_re.compile(r"\b(include|template|block|tpl|toYaml|toYamlPretty|nindent|indent|Files)\b")
_PLAIN_CALL = lazy_re.compile(r"""(?:include|template)\s+("[^"\\]+")\s([^|"`]|"[^"]*")*(?:\|\s*n?indent\s+\d+)?""")
"""A named template that is written out unchanged except for its indentation."""
_COPIED = ".marked"

_MARK = "\ue000{file} {line} {writer}\ue001"
_MARKED = lazy_re.compile(r"\ue000(\d+) (\d+) (\w+)\ue001")
_RESERVED = ("\ue000", "\ue001")


class MarkedCopies(Struct, frozen=True):
    """Marked copies of templates by name, and of the named templates that they call."""

    templates: Mapping[str, str]
    named: str
    files: tuple[str, ...]
    """The files that the marks refer to by number, as the user would type them."""


class Provenance(Struct, frozen=True):
    """The origin of every character of one rendered file."""

    rendered: Text
    shadow: Text
    """The output of the marked copy without its marks: the same text, unless the template has random values."""
    offsets: tuple[int, ...] = ()
    """The start of each piece in the shadow."""
    places: tuple[Place, ...] = ()
    writers: tuple[str, ...] = ()

    def at(self, offset: int) -> Place:
        """The source line of the character at `offset` of the rendered text."""
        found, same = self._in_shadow(offset)
        piece = bisect_right(self.offsets, found) - 1
        if piece < 0:
            return Place(self.rendered.path, 1, "file")
        place = self.places[piece]
        if same and self._wrote_one_line(piece):
            return place
        # Text that a named template passes on is best looked for at the call.
        own = (self.places[n] for n in range(piece, -1, -1) if self.places[n].file == self.rendered.path)
        return Place(self.rendered.path, next(own, place).line, "near")

    def _in_shadow(self, offset: int) -> tuple[int, bool]:
        """The same character in the shadow, and whether its line is equal."""
        if self.rendered.content == self.shadow.content:
            return offset, True
        line = self.rendered.line(offset)
        words = self.rendered.line_at(line)
        more = self.shadow.content.count("\n") - self.rendered.content.count("\n")
        there = line if not more or words == self.shadow.line_at(line) else max(line + more, 1)
        text = self.shadow.line_at(there)
        column = self.rendered.column(offset) - 1 if text == words else len(text) - len(text.lstrip())
        return self.shadow.start_of(there) + column, text == words and not more

    def _wrote_one_line(self, piece: int) -> bool:
        if self.writers[piece] != "value":
            return self.writers[piece] == "text"
        end = self.offsets[piece + 1] if piece + 1 < len(self.offsets) else len(self.shadow.content)
        return "\n" not in self.shadow.content[self.offsets[piece] : end].strip()


def copies(templates: Mapping[str, Text], all_files: Iterable[Text]) -> MarkedCopies:
    """Marked copies of templates. `all_files` are those where named templates may be defined."""
    # A library in a `file://` folder is a subchart of every chart that uses it, and yet one file.
    files = {text.path: text for text in all_files}.values()
    usable = [text for text in files if not any(character in text.content for character in _RESERVED)]
    numbers = {text.path: number for number, text in enumerate(usable)}
    defined = [(text, definition) for text in usable for definition in definitions(text.content)]
    times = Counter(definition.name for _, definition in defined)
    # Of two templates with one name Helm uses the one it reads last; that order is not modelled here.
    known = {name for name, count in times.items() if count == 1}
    named = (_named_copy(text, found, numbers[text.path], known) for text, found in defined if found.name in known)
    own = {name: text for name, text in templates.items() if text.path in numbers}
    marked = {name: _marked(text, numbers[text.path], known) for name, text in own.items()}
    return MarkedCopies(marked, "\n".join(named), tuple(numbers))


def provenance(rendered: Text, copied: str, files: tuple[str, ...]) -> Provenance:
    """`copied` is the output of the marked copy; empty if it has none."""
    first, *rest = _MARKED.split(copied)
    clean = [first]
    offsets: list[int] = []
    length = len(first)
    for text in rest[3::4]:
        offsets.append(length)
        clean.append(text)
        length += len(text)
    places = (Place(files[int(file)], int(line)) for file, line in zip(rest[0::4], rest[1::4], strict=True))
    return Provenance(rendered, Text(rendered.path, "".join(clean)), tuple(offsets), tuple(places), tuple(rest[2::4]))


def _named_copy(text: Text, found: Definition, number: int, known: set[str]) -> str:
    begin = f'{{{{ define "{found.name}{_COPIED}" {"-" if found.trims_start else ""}}}}}'
    end = f"{{{{{'-' if found.trims_end else ''} end }}}}"
    return begin + _marked(text, number, known, found.start, found.end) + end


def _marked(text: Text, number: int, known: set[str], start: int = 0, end: int | None = None) -> str:
    """A template, or the part of it from `start` to `end`, with its marks."""
    end = len(text.content) if end is None else end
    marks = [edit for piece in pieces(text.content, start, end) for edit in _edits(text, piece, number, known)]
    whole = edited(text, marks).content
    return whole[start : len(whole) - (len(text.content) - end)]


def _edits(text: Text, piece: TemplatePiece, number: int, known: set[str]) -> Iterator[Edit]:
    writer: Writer = "text" if not piece.says else "call" if _CALLS.search(piece.says) else "value"
    mark = _MARK.format(file=number, line=text.line(piece.start), writer=writer)
    yield Edit(Span(piece.mark, piece.mark), mark)
    call = _PLAIN_CALL.fullmatch(piece.says)
    if call and call[1].strip('"') in known:
        name_end = text.content.index(call[1], piece.start) + len(call[1]) - 1
        yield Edit(Span(name_end, name_end), _COPIED)
