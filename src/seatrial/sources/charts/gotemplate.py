"""Go templates, read only so far as to tell text from actions. Knows nothing of what an action does."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

SPACE = " \t\r\n"
"""What `{{-` and `-}}` trim."""

# An action: whether it trims the text before it, what it says, whether it trims the text after it.
_ACTION = re.compile(
    r"\{\{(?P<before>-(?=\s))?"
    r"(?P<says>\s*/\*.*?\*/\s*?|(?:[^\"`'}]|\"(?:\\.|[^\"\\])*\"|`[^`]*`|'(?:\\.|[^'\\])*'|\}(?!\}))*?)"
    r"(?P<after>(?<=\s)-)?\}\}",
    re.DOTALL,
)
_OPENS = re.compile(r"(if|range|with|define|block)\b")
_ENDS = re.compile(r"end\b")
_NAME = re.compile(r'define\s+("(?:\\.|[^"\\])*"|`[^`]*`)')
_SILENT = re.compile(r"/\*|\$\w*(\s*,\s*\$\w+)?\s*:?=[^=]|(if|else|range|with|end|define|break|continue|fail)\b")
_LINE = re.compile(r"[^\n]*\n?")


class Piece(Struct, frozen=True):
    """Text or an action of a template that is written to the output as it stands."""

    start: int
    """Where it begins: the first character of a line that is no space, or the two braces."""
    mark: int
    """Where something may be put before it that trims as it does."""
    says: str = ""
    """What an action says; empty for text."""


class Action(Struct, frozen=True):
    """What stands between two braces, and where."""

    start: int
    says: str


class Definition(Struct, frozen=True):
    """A named template: its name, and its body from the end of `define` to the beginning of `end`."""

    name: str
    start: int
    end: int
    trims_start: bool
    trims_end: bool


def pieces(content: str, start: int = 0, end: int | None = None) -> Iterator[Piece]:
    """What of a template is written out, line by line of its text, without the bodies of named templates."""
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
                yield Piece(action.start(), text_end, says)
        if opens := _OPENS.match(says):
            inside.append(opens[1])
            hidden += opens[1] in ("define", "block")
        elif _ENDS.match(says) and inside:
            hidden -= inside.pop() in ("define", "block")
        start = action.end()
    yield from _lines(content, start, end)


def actions(content: str, start: int = 0, end: int | None = None) -> Iterator[Action]:
    """Every action of a template, comments left out."""
    for action in _ACTION.finditer(content, start, len(content) if end is None else end):
        if not (says := action["says"].strip()).startswith("/*"):
            yield Action(action.start(), says)


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


def _lines(content: str, start: int, end: int) -> Iterator[Piece]:
    """Spaces may be trimmed, and must be as before: so each line is a piece from its first character that is none."""
    for line in _LINE.finditer(content, start, end):
        if words := line[0].lstrip(SPACE):
            at = line.end() - len(words)
            yield Piece(at, at)
