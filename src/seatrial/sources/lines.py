"""The line that a place points at, to be shown beside what is said of it."""

from __future__ import annotations

from pathlib import Path

from seatrial.errors import CannotContinue
from seatrial.resource import Place
from seatrial.sources.files import read_text


def line_at(place: Place) -> str | None:
    """The text of a line of the user's; None where it cannot be shown: in an archive, on standard input."""
    if not Path(place.file).is_file():
        return None
    try:
        lines = read_text(place.file, "show the line").content.splitlines()
    except CannotContinue:
        return None
    return lines[place.line - 1] if 0 < place.line <= len(lines) else None
