"""YAML and JSON files as Kubernetes reads them, and the position of each field.

The only module that knows about lines of YAML. `yamlnode` and `yamlscalar` give the values.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from typing import Any

import yaml
from msgspec import Struct

from seatrial.model import lazy_re
from seatrial.model.errors import CannotContinue
from seatrial.model.resource import Place
from seatrial.text import yamlscalar
from seatrial.text.source import Edit, Span, Text
from seatrial.text.yamlnode import (
    NESTING_MAX,
    InvalidYaml,
    Path,
    body_of,
    end_of,
    nodes,
    overridden,
    resolve_path,
    start_of,
)

_SEPARATOR = lazy_re.compile(r"^---(.*)$", re.MULTILINE)
_BLANK = lazy_re.compile(r"\s*")
_FIRST_COLUMN = lazy_re.compile(r"^[^\s#].*", re.MULTILINE)
_KEY = lazy_re.compile(r"([A-Za-z]\w*):(?:\s|\Z)")


class BrokenYaml(CannotContinue):
    """A document that cannot be parsed: the reason and the offset in its file."""

    def __init__(self, text: Text, offset: int, problem: str) -> None:
        super().__init__(f"{text.path}:{text.line(offset)}: cannot read the YAML: {problem}")
        self.offset = offset
        self.problem = problem


class Document(Struct, frozen=True):
    """One document of a file: its content and its position."""

    text: Text
    span: Span
    body: Any

    def place(self, *path: str | int) -> Place:
        """Where the key or item at `path` begins, or its nearest existing parent."""
        return Place(self.text.path, self.text.line(self.offset(*path)))

    def offset(self, *path: str | int) -> int:
        """Like `place`, as an offset in the file."""
        return self.span.start + _start(self._content, path)

    def entry(self, *path: str | int) -> Span | None:
        """The key and value at `path`, or the list item without its dash. None if `path` does not exist."""
        start, node, left = resolve_path(nodes(self._content), path)
        if left or node is None:
            return None
        return Span(self.span.start + start, self.span.start + end_of(node, self._content))

    def value(self, *path: str | int) -> Span | None:
        """Like `entry`, without the key."""
        _, node, left = resolve_path(nodes(self._content), path)
        if left or node is None:
            return None
        return Span(self.span.start + start_of(node), self.span.start + end_of(node, self._content))

    def overridden(self, *path: str | int) -> tuple[tuple[str, str], ...]:
        """The keys of the mapping at `path` that occur again further down, with the values that this hides."""
        return overridden(nodes(self._content), path)

    def contains(self, words: str) -> int:
        """How often the text has these words."""
        return self._content.count(words)

    @property
    def _content(self) -> str:
        return self.text.within(self.span)


def documents(text: Text) -> Iterator[Document]:
    """The documents of a file, split as kubectl does (`YAMLReader` of apimachinery). Empty documents are skipped."""
    if text.content.lstrip().startswith("{") and (found := _json_documents(text)):
        yield from found
        return
    start = 0
    for separator in _SEPARATOR.finditer(text.content):
        rest = separator[1].strip()
        if rest and not rest.startswith("#"):
            raise BrokenYaml(text, separator.start(), f"invalid Yaml document separator: {rest}")
        yield from _document(text, Span(start, separator.start()))
        start = separator.start()
    yield from _document(text, Span(start, len(text.content)))


def parse(text: Text, span: Span | None = None) -> Document:
    """The document in `span` of a file. If there are several, the first, as in Kubernetes."""
    span = span or Span(0, len(text.content))
    content = text.within(span)
    try:
        return Document(text, span, body_of(content))
    except InvalidYaml as invalid:
        raise BrokenYaml(text, span.start + invalid.index, invalid.problem) from None


def without_items(document: Document, path: Path, removed: Collection[int]) -> list[Edit]:
    """Edits that remove items from a list and leave everything else unchanged."""
    content = document.text.within(document.span)
    _, node, left = resolve_path(nodes(content), path)
    if left or not isinstance(node, yaml.SequenceNode):
        return []
    kept = [item for index, item in enumerate(node.value) if index not in removed]
    if node.flow_style or not kept:
        items = ", ".join(content[start_of(item) : end_of(item, content)] for item in kept)
        # Dashes may be in the column of their key; a bracket may not.
        edits = [Edit(Span(start_of(node), end_of(node, content)), f"{'' if node.flow_style else ' '}[{items}]")]
    else:
        edges = [content.rindex("-", 0, start_of(item) + 1) for item in node.value[1:]]
        starts = [content.rfind("\n", 0, edge) + 1 for edge in (start_of(node), *edges)]
        starts.append(content.find("\n", end_of(node, content)) + 1 or len(content))
        edits = [Edit(Span(starts[index], starts[index + 1]), "") for index in sorted(removed)]
    first = document.span.start
    return [Edit(Span(first + e.span.start, first + e.span.end), e.new) for e in edits]


def _start(content: str, path: Path) -> int:
    """Where the key or item at `path` begins. Most of a large document does not matter for that."""
    end = _end_of_first(content, path[0]) if path else None
    if end is not None:
        try:
            return resolve_path(nodes(content[:end]), path)[0]
        except InvalidYaml:  # What looked like a key is in a quoted string, say.
            pass
    return resolve_path(nodes(content), path)[0]


def _end_of_first(content: str, key: str | int) -> int | None:
    """Where the entry of a plain key in the first column ends; None unless all others are plain as well."""
    lines = list(_FIRST_COLUMN.finditer(content))
    named = [_KEY.match(line[0]) for line in lines]
    keys = [found[1] for found in named if found]
    if len(keys) != len(lines) or len(set(keys)) != len(keys) or key not in keys[:-1]:
        return None
    return lines[keys.index(str(key)) + 1].start()


def _document(text: Text, span: Span) -> Iterator[Document]:
    if text.within(span).strip():
        document = parse(text, span)
        if document.body is not None:
            yield document


def _json_documents(text: Text) -> list[Document]:
    """The objects of a JSON stream; empty if the text is not JSON (it may still be YAML)."""
    decoder = json.JSONDecoder(parse_float=_json_float, parse_constant=_no_json)
    found: list[Document] = []
    start, content = text.content.index("{"), text.content
    try:
        while start < len(content):
            body, end = decoder.raw_decode(content, start)
            _refuse_deep(body)
            found.append(Document(text, Span(start, end), body))
            start = _BLANK.match(content, end).end()  # type: ignore[union-attr]
    except (ValueError, RecursionError):
        return []
    return found


def _json_float(written: str) -> yamlscalar.Scalar:
    return yamlscalar.scalar(yamlscalar.PLAIN, written)


def _no_json(written: str) -> None:
    raise ValueError(f"{written} is not JSON")


def _refuse_deep(body: Any) -> None:
    level = [body]
    for _ in range(NESTING_MAX):
        level = [
            child
            for parent in level
            if isinstance(parent, dict | list)
            for child in (parent.values() if isinstance(parent, dict) else parent)
        ]
        if not level:
            return
    raise RecursionError
