"""Places in the user's files, shown as cargo shows them: the file, the lines, what is meant. Reads no file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from seatrial.model.resource import Place, Sure
from seatrial.report.page import Line, Piece, columns, line

TAB_COLUMNS = 4

HOW_SURE: dict[Sure, str] = {"exact": "", "near": " (near this line)", "file": " (somewhere in this file)"}


def gutter_of(places: Sequence[Place]) -> int:
    """Columns for the line numbers of these places."""
    return max((len(str(place.line)) for place in places if place.sure != "file"), default=1)


def excerpts(places: Sequence[Place], sources: Mapping[Place, str]) -> Iterator[Line]:
    """Each file once, in the order in which it is first named. The very first place is the one that is meant."""
    files: dict[str, list[Place]] = {}
    for place in dict.fromkeys(places):
        files.setdefault(place.file, []).append(place)
    gutter = gutter_of(places)
    for group in files.values():
        arrow = "-->" if group[0] == places[0] else ":::"
        yield line(" " * (gutter + 1), Piece(arrow, "place"), " ", *_name(group[0]))
        yield from _lines(group, sources, places[0], gutter)


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
        source = sources[place].expandtabs(TAB_COLUMNS).rstrip()
        yield line(" ", Piece(f"{place.line:>{gutter}} |", "place"), " ", source)
        if place.sure == "exact":
            yield (*margin, *_underline(source, "^" if place == meant else "-"))


def _underline(source: str, mark: str) -> tuple[Piece, Piece]:
    text = source.lstrip(" ").removeprefix("- ").lstrip(" ")
    before = columns(source) - columns(text)
    return Piece(" " * (before + 1)), Piece(mark * columns(text), "bad" if mark == "^" else "place")
