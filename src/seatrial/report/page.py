"""Lines of text whose parts have roles, and the page they are laid out on. Knows nothing of results or terminals.

All output passes through here: control characters are made visible (`harmless`); quotations (source lines, errors,
commands) are never cut, and folded only where a terminal would break them anyway; our own sentences are wrapped.
"""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from typing import Literal

from msgspec import Struct

Role = Literal["", "strong", "faint", "bad", "doubt", "good", "place"]


class Piece(Struct, frozen=True):
    """Part of a line; its role may become a colour, never text."""

    text: str
    role: Role = ""


Line = tuple[Piece, ...]
Ink = Callable[[str, Role], str]


def plain(text: str, role: Role) -> str:
    return text


class Page(Struct, frozen=True):
    """The layout of a report."""

    width: int = 100
    """Columns for sentences."""
    fold: int = 0
    """Columns at which quotations are folded; 0 keeps each on one line."""
    ink: Ink = plain
    quiet: bool = False
    """Findings only."""
    verbose: bool = False
    """Nothing shortened."""


# Control characters become their Unicode pictures, one for one, so that columns stay aligned. Bidirectional controls
# are replaced: they can make a line read as something else.
_CONTROLS = {code: 0x2400 + code for code in range(0x20)}
_INVISIBLE = dict.fromkeys((*range(0x80, 0xA0), 0x2028, 0x2029, *range(0x202A, 0x202F), *range(0x2066, 0x206A)), 0xFFFD)
_HARMLESS: dict[int, int | str] = {**_CONTROLS, **_INVISIBLE, 0x7F: 0x2421, ord("\t"): " "}


def harmless(text: str) -> str:
    """Text without characters that a terminal would interpret."""
    return text.translate(_HARMLESS)


def line(*parts: str | Piece) -> Line:
    return tuple(Piece(part) if isinstance(part, str) else part for part in parts)


def printed(lines: Iterable[Line], page: Page) -> str:
    """The lines as one text, each ended by a newline and without trailing blanks."""
    return "".join(_printed(pieces, page.ink) + "\n" for pieces in lines)


def columns(text: str) -> int:
    """How many columns `text` takes on a terminal."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def lines_of(text: str) -> list[str]:
    """The lines of a text, at least one. Only a newline ends a line, unlike `str.splitlines`."""
    return [words.rstrip("\r") for words in text.rstrip("\n").split("\n")]


def sentences(text: str, page: Page, *, first: str, rest: str) -> Iterator[str]:
    """Our own text, wrapped; `first` and `rest` are the indents of the first and the other lines."""
    for paragraph in lines_of(text):
        yield from _wrapped(paragraph, page.width, first, rest)
        first = rest


def quoted(text: str, page: Page, *, first: str, rest: str) -> Iterator[str]:
    """Quoted text, unchanged; folded between words only if the page folds."""
    for words in lines_of(text):
        if page.fold and columns(first + words) > page.fold:
            yield from _wrapped(words, page.fold, first, rest)
        else:
            yield first + words
        first = rest


def _wrapped(text: str, width: int, first: str, rest: str) -> list[str]:
    return textwrap.wrap(
        text,
        max(width, len(rest) + 20),
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    ) or [first]


def _printed(pieces: Line, ink: Ink) -> str:
    shown = [Piece(harmless(piece.text), piece.role) for piece in pieces]
    while shown and not shown[-1].text.rstrip():
        shown.pop()
    if shown:
        shown[-1] = Piece(shown[-1].text.rstrip(), shown[-1].role)
    return "".join(ink(piece.text, piece.role) if piece.role else piece.text for piece in shown)
