"""Text of charts, clusters and engines, made safe to show. Every format passes it through here or through `page`."""

from __future__ import annotations

from seatrial.report.page import harmless, lines_of

# Not allowed in XML, and no reader can do anything with them: halves of surrogate pairs and noncharacters.
_NO_CHARACTERS = dict.fromkeys((*range(0xD800, 0xE000), 0xFFFE, 0xFFFF), 0xFFFD)


def one_line(text: str) -> str:
    """The words of a text in one line, with control characters made visible."""
    return clean(" ".join(text.split()))


def many_lines(text: str) -> str:
    """A text whose only control characters are newlines."""
    return "\n".join(map(clean, lines_of(text)))


def clean(text: str) -> str:
    """A line without characters that a terminal or a parser would interpret."""
    return harmless(text).translate(_NO_CHARACTERS)
