"""Places in the user's files, shown as cargo shows them: the file, the line, what is meant. Reads no file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from seatrial.model.resource import Place, Sure
from seatrial.report.page import Line, Piece, columns, line

TAB_COLUMNS = 4
LINE_MAX = 160
"""Characters of a line of the user's that are shown: a certificate in base64 has thousands."""
OTHERS_MAX = 3
"""Further places that are named; the rest is counted."""

HOW_SURE: dict[Sure, str] = {"exact": "", "near": " (near this line)", "file": " (somewhere in this file)"}


def gutter_of(places: Sequence[Place]) -> int:
    """Columns for the line numbers of these places."""
    return max((len(str(place.line)) for place in places if place.sure != "file"), default=1)


def excerpts(places: Sequence[Place], sources: Mapping[Place, str], *, whole: bool) -> Iterator[Line]:
    """The first place with its line, and the names of the others; with `whole`, all places with their lines."""
    found = list(dict.fromkeys(places))
    if not found:
        return
    gutter = gutter_of(found)
    if not whole:
        yield from _file(found[:1], sources, found[0], gutter)
        if found[1:]:
            yield line(" " * (gutter + 1), Piece(":::", "place"), " ", where(found[1:]))
        return
    files: dict[str, list[Place]] = {}
    for place in found:
        files.setdefault(place.file, []).append(place)
    for group in files.values():
        yield from _file(group, sources, found[0], gutter)


def where(places: Sequence[Place]) -> str:
    """`a.yaml:3, b.yaml:7, c.yaml:1 and 4 more`"""
    named = list(dict.fromkeys(place.file if place.sure == "file" else str(place) for place in places))
    more = f" and {len(named) - OTHERS_MAX} more" if len(named) > OTHERS_MAX else ""
    return ", ".join(named[:OTHERS_MAX]) + more


def _file(places: list[Place], sources: Mapping[Place, str], meant: Place, gutter: int) -> Iterator[Line]:
    arrow = "-->" if places[0] == meant else ":::"
    yield line(" " * (gutter + 1), Piece(arrow, "place"), " ", *_name(places[0]))
    yield from _lines(places, sources, meant, gutter)


def _name(place: Place) -> tuple[Piece, Piece]:
    name = place.file if place.sure == "file" else str(place)
    return Piece(name, "strong"), Piece(HOW_SURE[place.sure])


def _lines(places: list[Place], sources: Mapping[Place, str], meant: Place, gutter: int) -> Iterator[Line]:
    shown = sorted(place for place in places if place.sure != "file" and sources.get(place, "").strip())
    margin = line(" " * (gutter + 2), Piece("|", "place"))
    last = 0
    for place in shown:
        if last == 0:
            yield margin
        elif place.line > last + 1:
            yield line(" " * (gutter - 1), Piece("...", "place"))
        last = place.line
        source = _cut(sources[place].expandtabs(TAB_COLUMNS).rstrip())
        yield line(" ", Piece(f"{place.line:>{gutter}} |", "place"), " ", source)
        if place.sure == "exact":
            yield (*margin, *_underline(source, "^" if place == meant else "-"))


def _cut(source: str) -> str:
    return f"{source[: LINE_MAX - 3]}..." if len(source) > LINE_MAX else source


def _underline(source: str, mark: str) -> tuple[Piece, Piece]:
    text = source.lstrip(" ").removeprefix("- ").lstrip(" ")
    before = columns(source) - columns(text)
    return Piece(" " * (before + 1)), Piece(mark * columns(text), "bad" if mark == "^" else "place")
