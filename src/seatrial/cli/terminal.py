"""The terminal: how wide it is, whether it has colours, and what is shown while the user waits."""

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

if TYPE_CHECKING:
    from rich.style import Style

    from seatrial.cli.flags import Color, Voice

SENTENCES_MAX = 100
"""Columns; longer lines are hard to read."""

STANDARD_ERROR = 2

STYLES: dict[Role, str] = {
    "strong": "bold",
    "faint": "dim",
    "bad": "bold red",
    "doubt": "yellow",
    "good": "green",
    "place": "cyan",
}


def page(voice: Voice) -> Page:
    """Standard output, as a page. What is no terminal gets the same text whatever the machine."""
    wide = shutil.get_terminal_size().columns if sys.stdout.isatty() else 0
    return Page(
        width=min(wide or SENTENCES_MAX, SENTENCES_MAX),
        fold=wide,
        ink=ink(voice.color, terminal=sys.stdout.isatty()),
        quiet=voice.quiet,
        verbose=voice.verbose,
    )


def ink(color: Color, *, terminal: bool) -> Ink:
    dull = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return _coloured if color == "always" or (color == "auto" and terminal and not dull) else plain


def say(text: str) -> None:
    """Write to standard output; a reader that has left changes nothing about the verdict."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextmanager
def at_work(voice: Voice) -> Iterator[Callable[[str], None]]:
    """Somewhere to say what is being done; heard only on a terminal."""
    with _helm_silent(voice) as standard_error:
        if voice.quiet or not standard_error.isatty():
            yield lambda said: None
            return
        from rich.console import Console
        from rich.text import Text

        console = Console(file=standard_error, no_color=ink(voice.color, terminal=True) is plain)
        with console.status(Text("read the input")) as status:
            yield lambda said: status.update(Text(harmless(said), no_wrap=True, overflow="ellipsis"))


@contextmanager
def _helm_silent(voice: Voice) -> Iterator[TextIO]:
    """Standard error for us alone: Helm's library logs to it by itself, with the time of day. Verbose leaves it be."""
    with os.fdopen(os.dup(STANDARD_ERROR), "w") as kept:
        if not voice.verbose:
            with Path(os.devnull).open("w") as nowhere:
                os.dup2(nowhere.fileno(), STANDARD_ERROR)
        try:
            yield kept
        finally:
            os.dup2(kept.fileno(), STANDARD_ERROR)


def _coloured(text: str, role: Role) -> str:
    from rich.color import ColorSystem

    return _style(role).render(text, color_system=ColorSystem.STANDARD)


@cache
def _style(role: Role) -> Style:
    from rich.style import Style

    return Style.parse(STYLES.get(role, ""))
