"""One line per finding, for editors and for long lists: `file:line: rule certainty damage message`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from seatrial.model.finding import Finding
from seatrial.model.result import Result
from seatrial.report.not_rehearsed import not_rehearsed
from seatrial.report.page import Line, Page, Piece, line, printed
from seatrial.report.wording import after, closing, exit_line


def render(result: Result, page: Page) -> str:
    last = (*([] if page.quiet else [closing(result)]), exit_line(result, quiet=page.quiet))
    return printed((*not_rehearsed(result, page), *lines(result.findings), *map(line, filter(None, last))), page)


def lines(findings: Iterable[Finding]) -> Iterator[Line]:
    for finding in findings:
        message = " ".join(finding.message.split())
        case = f" [{finding.case}]" if finding.case else ""
        case += f" [{after(finding)}]" if finding.after else ""
        removal = " (on removal)" if finding.removal else ""
        removal += " (known)" if finding.known else ""
        yield line(
            Piece(f"{_where(finding)}:", "strong"),
            f" {finding.rule} ",
            Piece(finding.certainty, "doubt" if finding.certainty == "may" else "bad"),
            f" {finding.damage} {message}{removal}{case}",
        )


def _where(finding: Finding) -> str:
    """The place, or the object if no file is known for it."""
    if finding.places:
        return str(finding.places[0])
    return str(finding.objects[0]) if finding.objects else finding.action
