"""The terminal: its width, its colours, and the progress line."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from seatrial.report.page import Ink, Page, Role, harmless, plain
from seatrial.sandbox import watchdog

if TYPE_CHECKING:
    from rich.style import Style

    from seatrial.cli.flags import Color, OutputFlags

SENTENCE_COLUMNS_MAX = 100
"""Longer lines are hard to read."""

STANDARD_ERROR = 2

STYLES: dict[Role, str] = {
    "strong": "bold",
    "faint": "dim",
    "bad": "bold red",
    "doubt": "yellow",
    "good": "green",
    "place": "cyan",
}


def page(display: OutputFlags, *, file: str = "") -> Page:
    """Standard output or a file as a page. Output that does not go to a terminal is the same on every machine."""
    terminal = sys.stdout.isatty() and not file
    wide = shutil.get_terminal_size().columns if terminal else 0
    return Page(
        width=min(wide or SENTENCE_COLUMNS_MAX, SENTENCE_COLUMNS_MAX),
        fold=wide,
        ink=plain if file else ink(display.color, terminal=terminal),
        quiet=display.quiet,
        verbose=display.verbose,
    )


def ink(color: Color, *, terminal: bool) -> Ink:
    dull = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return _coloured if color == "always" or (color == "auto" and terminal and not dull) else plain


def write(text: str) -> None:
    """Write to standard output; a closed pipe does not change the exit code."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextmanager
def progress_line(display: OutputFlags) -> Iterator[Callable[[str], None]]:
    """A function that shows what is being done, on a terminal only."""
    with _helm_silent(display) as standard_error:
        if display.quiet or not standard_error.isatty():
            yield lambda doing: None
            return
        from rich.console import Console
        from rich.text import Text

        console = Console(file=standard_error, no_color=ink(display.color, terminal=True) is plain)
        with console.status(Text("read the input")) as status:
            yield lambda doing: status.update(Text(harmless(doing), no_wrap=True, overflow="ellipsis"))


@contextmanager
def _helm_silent(display: OutputFlags) -> Iterator[TextIO]:
    """Standard error without the log of Helm's library, which contains the time of day; verbose keeps the log."""
    with os.fdopen(os.dup(STANDARD_ERROR), "w") as kept:
        if not display.verbose:
            with Path(os.devnull).open("w") as nowhere:
                os.dup2(nowhere.fileno(), STANDARD_ERROR)
        watchdog.complain_to(kept.fileno())
        try:
            yield kept
        finally:
            os.dup2(kept.fileno(), STANDARD_ERROR)
            watchdog.complain_to(STANDARD_ERROR)


def _coloured(text: str, role: Role) -> str:
    from rich.color import ColorSystem

    return _style(role).render(text, color_system=ColorSystem.STANDARD)


@cache
def _style(role: Role) -> Style:
    from rich.style import Style

    return Style.parse(STYLES.get(role, ""))
