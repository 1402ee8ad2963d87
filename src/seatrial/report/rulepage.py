"""The page of a rule: paragraphs wrapped, examples unchanged. Knows only the Markdown that rule pages use."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from seatrial.model.acceptance import Audit
from seatrial.model.finding import Invariant, Rule
from seatrial.model.interruption import InterruptionRule
from seatrial.report.page import Line, Page, Piece, line, printed, sentences

FENCE = "```"
Explained = Rule | Invariant | Audit | InterruptionRule


def render(rule: Explained, text: str, page: Page) -> str:
    return printed(_set(rule, text, page), page)


def render_list(rules: Sequence[tuple[Explained, str]], page: Page) -> str:
    """Every rule with the first sentence of its page."""
    return printed((entry for rule, text in rules for entry in _entry(rule, text, page)), page)


def _entry(rule: Explained, text: str, page: Page) -> Iterator[Line]:
    yield line(rule.code, "  ", Piece(rule.name, "strong"))
    margin = " " * (len(rule.code) + 2)
    about = text.partition("\n\n")[0]
    yield from (line(words) for words in sentences(" ".join(about.split()), page, first=margin, rest=margin))


def _set(rule: Explained, text: str, page: Page) -> Iterator[Line]:
    yield line(Piece(rule.name, "strong"), f" ({rule.code})")
    yield ()
    paragraph: list[str] = []
    fenced = False
    for written in (*text.splitlines(), ""):
        ends = not written.strip() or written.startswith(("#", "- ", FENCE))
        if paragraph and (fenced or ends):
            yield from _wrapped(" ".join(paragraph), page)
            paragraph = []
        if written.startswith(FENCE):
            fenced = not fenced
        elif fenced:
            yield line("    ", Piece(written, "place"))
        elif written.startswith("#"):
            yield line(Piece(written.lstrip("# "), "strong"))
        elif written.strip():
            paragraph.append(written.strip())
        else:
            yield ()


def _wrapped(text: str, page: Page) -> Iterator[Line]:
    rest = "  " if text.startswith("- ") else ""
    return (line(words) for words in sentences(text, page, first="", rest=rest))
