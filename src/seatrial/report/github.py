"""Workflow commands of GitHub Actions: one annotation per finding, and the closing line for the log.

GitHub shows ten errors, ten warnings and ten notices of a step; findings are in order, so the worst are shown.
"""

from __future__ import annotations

from collections.abc import Iterator
from posixpath import normpath

from seatrial.model.finding import Finding
from seatrial.model.result import Result
from seatrial.report.explanation import explanation, headline, rating
from seatrial.report.not_rehearsed import sentences_of
from seatrial.report.page import Page
from seatrial.report.severity import Severity, severity
from seatrial.report.untrusted import clean, many_lines, one_line
from seatrial.report.wording import closing

COMMANDS: dict[Severity, str] = {"error": "error", "warning": "warning", "note": "notice"}

# As actions/toolkit escapes them, packages/core/src/command.ts.
_DATA = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_PROPERTY = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A", ":": "%3A", ",": "%2C"})


def render(result: Result, page: Page) -> str:
    return "".join(f"{words}\n" for words in _lines(result, page))


def _lines(result: Result, page: Page) -> Iterator[str]:
    for words in sentences_of(result):
        yield _command("warning", {"title": "seatrial"}, words)
    for finding in result.findings:
        more = len(finding.places) > 1
        text = "\n".join((headline(finding), *explanation(finding, result).lines(where=more)))
        yield _command(COMMANDS[severity(finding)], _properties(finding), text)
    if not page.quiet:
        # The older form of a command may begin anywhere in a line.
        yield one_line(closing(result)).replace("##[", "## [")


def _properties(finding: Finding) -> dict[str, str]:
    title = {"title": f"{finding.rule} ({rating(finding)})"}
    if not finding.places:
        return title
    place = finding.places[0]
    line = {} if place.sure == "file" else {"line": str(place.line)}
    return {"file": normpath(place.file), **line, **title}


def _command(name: str, properties: dict[str, str], text: str) -> str:
    written = ",".join(f"{key}={clean(value).translate(_PROPERTY)}" for key, value in properties.items())
    return f"::{name} {written}::{many_lines(text).translate(_DATA)}"
