"""JUnit XML, for the test reports of GitLab, Jenkins and others: a suite per engine and values case.

Each finding is a test case: failed if it is an error, otherwise skipped, which such reports show without failing. So is
each step that ends well, and, skipped, each part of the input that was not rehearsed. Names have no lines and no
wording, so that a finding is recognised in the next run.
"""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from msgspec import Struct

from seatrial.model.engine import EngineId
from seatrial.model.finding import Finding
from seatrial.model.result import Result
from seatrial.model.timeline import Rehearsal
from seatrial.report.explanation import explanation, headline, rating
from seatrial.report.not_rehearsed import sentences_of
from seatrial.report.page import Page
from seatrial.report.severity import severity
from seatrial.report.untrusted import many_lines, one_line
from seatrial.report.wording import closing

OBJECTS_MAX = 3
DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>\n'


class Suite(Struct, frozen=True):
    engine: EngineId
    case: str
    rehearsals: tuple[Rehearsal, ...]
    findings: tuple[Finding, ...]

    def __str__(self) -> str:
        return one_line(f"{self.engine}, {self.case}" if self.case else str(self.engine))

    @property
    def classname(self) -> str:
        """Jenkins takes what is before the last dot for a package."""
        case = f", {self.case}" if self.case else ""
        return f"seatrial.{one_line(self.engine.name + case).replace('.', '_')}"


def render(result: Result, page: Page) -> str:
    root = Element("testsuites", name="seatrial")
    for suite in _suites(result):
        _suite(SubElement(root, "testsuite", name=str(suite)), suite, result)
    if len(root):
        said = SubElement(root[0], "system-out")
        said.text = "\n".join(map(many_lines, (*sentences_of(result), *result.notes, closing(result))))
    _count(root)
    indent(root)
    return DECLARATION + tostring(root, encoding="unicode") + "\n"


def _suites(result: Result) -> Iterator[Suite]:
    """In the order of the rehearsals; each step is listed as it ends under the first schedule, the ordinary one."""
    keys = dict.fromkeys((played.rehearsal.engine, played.case) for played in result.played)
    left = [*result.findings]
    for engine, case in keys:
        own = [played.rehearsal for played in result.played if (played.rehearsal.engine, played.case) == (engine, case)]
        shown = tuple(rehearsal for rehearsal in own if rehearsal.schedule == own[0].schedule)
        found = tuple(finding for finding in left if (finding.engines[0], finding.case) == (engine, case))
        left = [finding for finding in left if finding not in found]
        yield Suite(engine, case, shown, found)
    if left:
        yield Suite(left[0].engines[0], "", (), tuple(left))


def _suite(element: Element, suite: Suite, result: Result) -> None:
    names: dict[str, int] = {}
    for finding in suite.findings:
        _failure(_case(element, suite, names, _name(finding)), finding, result)
    for rehearsal in suite.rehearsals:
        for number, step in enumerate(rehearsal.steps, start=1):
            if step.outcome == "ok":
                source = f" {step.deploys}" if step.deploys else ""
                _case(element, suite, names, one_line(f"step {number}, {step.action} {step.release}{source}"))
    for part in result.not_rehearsed:
        if part.is_about(suite.case):
            case = _case(
                element, suite, names, one_line(f"not rehearsed: {part.step}" if part.step else "not rehearsed")
            )
            SubElement(case, "skipped", message=one_line(part.reason))


def _case(element: Element, suite: Suite, names: dict[str, int], name: str) -> Element:
    """A test case; a name that is used again gets a number, since readers drop the second of two equal ones."""
    names[name] = names.get(name, 0) + 1
    unique = name if names[name] == 1 else f"{name} ({names[name]})"
    return SubElement(element, "testcase", name=unique, classname=suite.classname, time="0")


def _name(finding: Finding) -> str:
    shown = [str(ref) for ref in finding.objects[:OBJECTS_MAX]] or [finding.action]
    more = len(finding.objects) - len(shown)
    return one_line(f"{finding.rule}: {', '.join(shown)}{f' and {more} more' if more > 0 else ''}")


def _failure(case: Element, finding: Finding, result: Result) -> None:
    if finding.places:
        case.set("file", one_line(finding.places[0].file))
    tag = "failure" if severity(finding) == "error" else "skipped"
    element = SubElement(case, tag, message=headline(finding), type=rating(finding))
    head = f"{finding.rule} ({finding.code}) {rating(finding)}: {headline(finding)}"
    element.text = "\n".join((head, *explanation(finding, result).lines(where=True)))


def _count(root: Element) -> None:
    for element in (*root, root):
        for attribute, tag in (("tests", "testcase"), ("failures", "failure"), ("skipped", "skipped")):
            element.set(attribute, str(len([*element.iter(tag)])))
        element.set("errors", "0")
        element.set("time", "0")
