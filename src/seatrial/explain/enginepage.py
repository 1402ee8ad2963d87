"""The page of an engine. Decides nothing."""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.explain.engines import EngineTopic
from seatrial.explain.section import Section
from seatrial.report.page import Line, Page, Piece, line, printed, sentences
from seatrial.report.table import table

INDENT = "  "


def render(topic: EngineTopic, page: Page) -> str:
    return printed(_lines(topic, page), page)


def _lines(topic: EngineTopic, page: Page) -> Iterator[Line]:
    yield line(Piece(f"{topic.label} {topic.version}", "strong"), f" (--engine {topic.name})")
    yield ()
    others = [version for version in topic.versions if version != topic.version]
    if others:
        yield line(f"Also modelled: {', '.join(others)} (--engine {topic.name}@{others[0]}).")
    yield line(f"What is modelled and what is not: {topic.page}")
    for section in topic.sections:
        yield from _section(section, page)
    if topic.rules:
        yield from _section(Section("Rules (seatrial explain NAME)", entries=topic.rules), page)


def _section(section: Section, page: Page) -> Iterator[Line]:
    yield ()
    end = ":" if section.rows or section.entries or section.sentences else "."
    yield from (line(Piece(words, "strong")) for words in sentences(section.title + end, page, first="", rest=""))
    if section.rows:
        yield from table(section.rows, page, lambda cell: "", indent=INDENT)
    if section.entries:
        yield from (line(words) for words in sentences(", ".join(section.entries), page, first=INDENT, rest=INDENT))
    for sentence in section.sentences:
        yield from (line(words) for words in sentences(sentence, page, first=f"{INDENT}- ", rest=f"{INDENT}  "))
