"""Splitting Go templates into text and actions. Knows nothing of what an action does."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from seatrial.model import lazy_re

SPACE = " \t\r\n"
"""The characters that `{{-` and `-}}` trim."""

# An action: whether it trims the text before it, its content, whether it trims the text after it.
_ACTION = lazy_re.compile(
    r"\{\{(?P<before>-(?=\s))?"
    r"(?P<says>\s*/\*.*?\*/\s*?|(?:[^\"`'}]|\"(?:\\.|[^\"\\])*\"|`[^`]*`|'(?:\\.|[^'\\])*'|\}(?!\}))*?)"
    r"(?P<after>(?<=\s)-)?\}\}",
    re.DOTALL,
)
_OPENS = lazy_re.compile(r"(if|range|with|define|block)\b")
_ENDS = lazy_re.compile(r"end\b")
_NAME = lazy_re.compile(r'define\s+("(?:\\.|[^"\\])*"|`[^`]*`)')
_SILENT = lazy_re.compile(r"/\*|\$\w*(\s*,\s*\$\w+)?\s*:?=[^=]|(if|else|range|with|end|define|break|continue|fail)\b")
_LINE = lazy_re.compile(r"[^\n]*\n?")


class TemplatePiece(Struct, frozen=True):
    """Text or an action of a template that writes to the output."""

    start: int
    """Offset of the first non-space character of a line of text, or of the two braces."""
    mark: int
    """Offset where a mark can be inserted without changing what is trimmed."""
    says: str = ""
    """The content of an action; empty for text."""


class TemplateAction(Struct, frozen=True):
    """The content between two braces, and its offset."""

    start: int
    says: str


class Definition(Struct, frozen=True):
    """A named template: its name, and its body from the end of `define` to the beginning of `end`."""

    name: str
    start: int
    end: int
    trims_start: bool
    trims_end: bool


def pieces(content: str, start: int = 0, end: int | None = None) -> Iterator[TemplatePiece]:
    """The parts of a template that write to the output, one per line of text, without named templates."""
    end = len(content) if end is None else end
    hidden = 0
    inside: list[str] = []
    for action in _ACTION.finditer(content, start, end):
        says = action["says"].strip()
        text = content[start : action.start()]
        text_end = start + len(text.rstrip(SPACE) if action["before"] else text)
        if not hidden:
            yield from _lines(content, start, text_end)
            if says and not _SILENT.match(says):
                yield TemplatePiece(action.start(), text_end, says)
        if opens := _OPENS.match(says):
            inside.append(opens[1])
            hidden += opens[1] in ("define", "block")
        elif _ENDS.match(says) and inside:
            hidden -= inside.pop() in ("define", "block")
        start = action.end()
    yield from _lines(content, start, end)


def actions(content: str, start: int = 0, end: int | None = None) -> Iterator[TemplateAction]:
    """Every action of a template except comments."""
    for action in _ACTION.finditer(content, start, len(content) if end is None else end):
        if not (says := action["says"].strip()).startswith("/*"):
            yield TemplateAction(action.start(), says)


def definitions(content: str) -> Iterator[Definition]:
    """The named templates that a file defines."""
    opened: list[re.Match[str]] = []
    for action in _ACTION.finditer(content):
        says = action["says"].strip()
        if _OPENS.match(says):
            opened.append(action)
        elif _ENDS.match(says) and opened:
            begun = opened.pop()
            if name := _NAME.match(begun["says"].strip()):
                trims = bool(begun["after"]), bool(action["before"])
                yield Definition(name[1][1:-1], begun.end(), action.start(), *trims)


def open_blocks(content: str, offset: int) -> tuple[int, ...]:
    """The offsets of the blocks (`if`, `range`, `with`, ...) that are open at an offset, outermost first."""
    opened: list[int] = []
    for action in actions(content, 0):
        if action.start >= offset:
            break
        if _OPENS.match(action.says):
            opened.append(action.start)
        elif _ENDS.match(action.says) and opened:
            opened.pop()
    return tuple(opened)


def _lines(content: str, start: int, end: int) -> Iterator[TemplatePiece]:
    """One piece per line, from its first non-space character: leading spaces may be trimmed."""
    for line in _LINE.finditer(content, start, end):
        if words := line[0].lstrip(SPACE):
            at = line.end() - len(words)
            yield TemplatePiece(at, at)
