"""The layout of `--help`: flags on the left, descriptions on the right, no boxes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from seatrial.report.page import Page, sentences

if TYPE_CHECKING:
    from cyclopts.help import HelpEntry, HelpPanel
    from rich.console import Console, ConsoleOptions

NAMES_COLUMNS = 30
WIDTH_MAX = 100


class Help:
    """A help formatter for cyclopts."""

    def __call__(self, console: Console, options: ConsoleOptions, panel: HelpPanel) -> None:
        if panel.entries:
            heading = _plain(panel.title, console)
            _print(console, [f"{heading}:", *(text for entry in panel.entries for text in _entry(entry, console)), ""])

    def render_usage(self, console: Console, options: ConsoleOptions, usage: Any) -> None:
        _print(console, [f"Usage: {_plain(usage, console).removeprefix('Usage: ')}", ""])

    def render_description(self, console: Console, options: ConsoleOptions, description: Any) -> None:
        paragraphs = _plain(description, console).split("\n\n")
        _print(console, (text for paragraph in paragraphs for text in (*_paragraph(paragraph, console), "")))


def _paragraph(text: str, console: Console) -> Iterator[str]:
    """Wrapped to the terminal; indented text is an example and stays as it is."""
    if text.startswith(" "):
        yield from text.splitlines()
    else:
        yield from sentences(" ".join(text.split()), _page(console), first="", rest="")


def _entry(entry: HelpEntry, console: Console) -> Iterator[str]:
    names = f"  {_names(entry)}"
    text = " ".join(_plain(entry.description, console).split())
    if entry.choices:
        text = f"{text} [{', '.join(entry.choices)}]"
    margin = " " * NAMES_COLUMNS
    first, *rest = sentences(text, _page(console), first=margin, rest=margin)
    if len(names) + 2 > NAMES_COLUMNS:
        yield names
        yield first
    else:
        yield names + first[len(names) :]
    yield from rest


def _names(entry: HelpEntry) -> str:
    if entry.positional_label:
        return entry.positional_label
    flags = (*entry.positive_shorts, *entry.positive_names)
    indent = "    " if flags[0].startswith("--") else ""
    value = f" {entry.metavar.removesuffix('...')}" if entry.metavar else ""
    return f"{indent}{', '.join(flags)}{value}"


def _plain(text: Any, console: Console) -> str:
    """The text of a description, which cyclopts passes as a rich renderable."""
    if text is None or isinstance(text, str):
        return text or ""
    parts = console.render(text, console.options.update(width=10_000, no_wrap=True))
    return "\n".join(line.rstrip() for line in "".join(part.text for part in parts).splitlines()).strip("\n")


def _page(console: Console) -> Page:
    return Page(width=min(console.width, WIDTH_MAX))


def _print(console: Console, lines: Any) -> None:
    for text in lines:
        console.print(text, markup=False, highlight=False, soft_wrap=True)
