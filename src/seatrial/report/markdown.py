"""A comment for a pull request: a table of the findings, then a collapsible part for each.

All text of charts is inside of code, where neither HTML nor Markdown nor a mention (`@team`, `#12`) has a meaning.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from html import escape

from seatrial.model.finding import Finding
from seatrial.model.result import Result
from seatrial.report.explanation import explanation, headline, place, rating
from seatrial.report.not_rehearsed import sentences_of
from seatrial.report.page import Page, sentences
from seatrial.report.untrusted import one_line
from seatrial.report.wording import closing, counted

BYTES_MAX = 60_000
"""GitHub refuses a comment of more than 65,536 characters."""
TABLE_BYTES_MAX = 20_000
RESERVED_BYTES = 1_000
"""For the lines at the end."""
CELL_MAX = 300
NOTICES_MAX = 5
WIDTH = 100


def render(result: Result, page: Page) -> str:
    parts = [*_head(result)]
    rows = _fitting(map(_row, result.findings), TABLE_BYTES_MAX)
    if rows:
        parts.append("| | Finding | Where |\n|---|---|---|\n" + "".join(rows))
    room = BYTES_MAX - RESERVED_BYTES - _size("\n".join(parts))
    details = _fitting((_details(finding, result) for finding in result.findings), room)
    parts += details
    parts.append(_code(one_line(closing(result))) + "\n")
    if left_out := len(result.findings) - len(details):
        parts.append(f"{counted(left_out, 'finding')} left out: the report would be too long for a comment.\n")
    return "\n".join(parts)


def _head(result: Result) -> Iterator[str]:
    found = counted(len(result.findings), "finding") if result.findings else "no findings"
    yield f"### seatrial: {found}{' in what was rehearsed' if result.not_rehearsed else ''}\n"
    notices = sentences_of(result)
    more = [f"Not rehearsed: {len(notices) - NOTICES_MAX} more"] if len(notices) > NOTICES_MAX else []
    if notices:
        yield "".join(f"- {_code(_cut(one_line(words)))}\n" for words in (*notices[:NOTICES_MAX], *more))


def _row(finding: Finding) -> str:
    where = place(finding.places[0]) if finding.places else ""
    cells = (rating(finding), f"`{finding.rule}`: {_cell(headline(finding))}", _cell(where))
    return f"| {' | '.join(cells)} |\n"


def _details(finding: Finding, result: Result) -> str:
    head = f"{finding.rule} ({rating(finding)}): <code>{escape(_cut(headline(finding)))}</code>"
    lines = [words for text in explanation(finding, result).lines(where=True) for words in _wrapped(text)]
    fence = "`" * max(3, _longest_run("\n".join(lines)) + 1)
    block = (f"{fence}text", *lines, fence) if lines else ()
    return "\n".join((f"<details><summary>{head}</summary>\n", *block, "\n</details>\n"))


def _wrapped(text: str) -> Iterable[str]:
    """Our sentences, wrapped; a command stays on one line."""
    if text.startswith("Confirm: "):
        return (text,)
    indent = text[: len(text) - len(text.lstrip())]
    return sentences(text.strip(), Page(width=WIDTH), first=indent, rest=f"{indent}  " if indent else "")


def _cell(text: str) -> str:
    """Code in a cell of a table, where a bar ends the cell even inside of code, unless one backslash is before it."""
    return _code(_cut(text).replace("\\|", "\\ |")).replace("|", "\\|") if text else ""


def _code(text: str) -> str:
    """A code span; one that contains or ends with backticks needs a longer fence and spaces."""
    fence = "`" * (_longest_run(text) + 1)
    space = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{space}{text}{space}{fence}"


def _cut(text: str) -> str:
    return text if len(text) <= CELL_MAX else f"{text[:CELL_MAX]} ..."


def _longest_run(text: str) -> int:
    return max(map(len, re.findall("`+", text)), default=0)


def _fitting(texts: Iterator[str], room: int) -> list[str]:
    """The first of these texts that fit."""
    fitting = []
    for text in texts:
        room -= _size(text) + 1
        if room < 0:
            break
        fitting.append(text)
    return fitting


def _size(text: str) -> int:
    return len(text.encode(errors="replace"))
