"""The report for people: the steps, each finding with its place and its evidence, and what was assumed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from seatrial.model.finding import Finding
from seatrial.model.result import Asked, Consumer, Dependence, Gate, RenderedDifference, Result
from seatrial.report import concise
from seatrial.report.agreement import agreement_section
from seatrial.report.compared import compared_section
from seatrial.report.explored import explored_section
from seatrial.report.finding import in_brief, in_full
from seatrial.report.gates import gates_section
from seatrial.report.ignored import ignored_section
from seatrial.report.interrupted import interrupted_section
from seatrial.report.not_rehearsed import not_rehearsed
from seatrial.report.page import Line, Page, Piece, line, printed, quoted, sentences
from seatrial.report.prerequisites import prerequisites_section
from seatrial.report.standings import standings_table
from seatrial.report.steps import steps_table
from seatrial.report.wording import closing, counted, dependence, difference, exit_line, listed

FULL_MIN = 3
"""Findings shown in full even if none of them reaches --fail-on; a second one of the same rule is not."""
FINDINGS_MAX = 30
"""Findings with headline and place; the rest take one line each."""
DIFFERENCES_MAX = 8
LIKE_MAX = 2
"""Differences shown of one template line: the names on install and on upgrade."""
AGAIN = "The same for other objects (-v shows them in full):"
BRIEF = "Findings below --fail-on (-v shows them in full):"
KNOWN = "Known findings (they were there before, and do not fail the check):"
REMOVAL = "When it is removed (by design; fails a check only with --fail-on-removal):"

NO_BREAK = "\xa0"


def render(result: Result, page: Page) -> str:
    return printed(_report(result, page), page)


def _report(result: Result, page: Page) -> Iterator[Line]:
    yield from not_rehearsed(result, page)
    if not page.quiet:
        explaining = (*result.findings, *(ignored.finding for ignored in result.ignored))
        yield from steps_table(result.played, explaining, page, result.not_rehearsed)
        yield from standings_table("Engines compared", result.standings, page)
        yield ()
    yield from _findings(result, page)
    if not page.quiet:
        yield from _nothing_found(result)
        yield from ignored_section(result.ignored, page)
        yield from compared_section(result.comparison, page)
        yield from agreement_section(result.agreements, page)
        yield from interrupted_section(result.interrupted, page)
        yield from explored_section(result.explored, page)
        yield from _consumers(result.consumers, page)
        yield from _differences("Objects that differ between renderings:", result.differences, page)
        yield from _differences("Objects that engines treat differently:", result.contrasts, page)
        yield from _dependences(_relevant_dependences(result, page), page)
        yield from gates_section(_relevant_gates(result, page), page)
        yield from _assumptions(result, page)
        yield from _last_line(result, page)
    if ended := exit_line(result, quiet=page.quiet):
        yield line(Piece(ended, "strong"))


def _findings(result: Result, page: Page) -> Iterator[Line]:
    """Those that fail the check and the first ones in full, the others briefly; what a removal does comes last."""
    failing = {id(one) for one in (result.exit.failing if result.exit else result.findings)}
    ordered = sorted(result.findings, key=lambda finding: finding.removal)
    shown = ordered if page.verbose else ordered[:FINDINGS_MAX]
    first_of_rule = {finding.rule: id(finding) for finding in reversed(shown)}
    first_alike = {_story(finding): id(finding) for finding in reversed(shown)}
    again = [one for one in shown if not page.verbose and id(one) in failing and first_alike[_story(one)] != id(one)]
    repeated = {id(one) for one in again}
    whole = {
        id(one)
        for number, one in enumerate(shown)
        if page.verbose
        or (id(one) in failing and id(one) not in repeated)
        or (number < FULL_MIN and not one.removal and not one.known and first_of_rule[one.rule] == id(one))
    }
    by_design = [one for one in shown if one.removal]
    yield from _in_full((one for one in shown if id(one) in whole and not one.removal), result, page)
    yield from _in_brief(AGAIN, [one for one in again if not one.removal], page)
    brief = [one for one in shown if id(one) not in whole | repeated and not one.removal]
    yield from _in_brief(BRIEF, [one for one in brief if not one.known], page)
    yield from _in_brief(KNOWN, [one for one in brief if one.known], page)
    if any(id(one) in whole for one in by_design):
        yield line(Piece(REMOVAL, "strong"))
        yield ()
        yield from _in_full(by_design, result, page)
    else:
        yield from _in_brief(REMOVAL, by_design, page)
    if rest := ordered[len(shown) :]:
        yield line(f"and {counted(len(rest), 'more finding', 'more findings')}, one line each (-v shows all in full):")
        yield from concise.lines(rest)
        yield ()


def _story(finding: Finding) -> tuple[object, ...]:
    """Equal for findings that tell the same of other objects, such as the two webhook configurations of one backend."""
    apart = finding.fingerprint if finding.fix and finding.fix.edits else ""
    kind = finding.rule, finding.certainty, finding.damage, finding.removal
    return (*kind, finding.step, finding.case, len(finding.details), apart)


def _in_full(findings: Iterable[Finding], result: Result, page: Page) -> Iterator[Line]:
    for finding in findings:
        yield from in_full(finding, result, page)
        yield ()


def _in_brief(heading: str, findings: Sequence[Finding], page: Page) -> Iterator[Line]:
    if not findings:
        return
    yield line(Piece(heading, "strong"))
    for finding in findings:
        yield from in_brief(finding, page)
    yield ()


def _relevant_gates(result: Result, page: Page) -> list[Gate]:
    """Webhooks that a finding is about, or that refused an object that one is about; verbose: all."""
    if page.verbose:
        return list(result.gates)
    objects = {str(ref) for finding in result.findings for ref in finding.objects}
    refused = {gate.webhook for gate in result.gates for moment in gate.moments if _refused(moment, objects)}
    return [gate for gate in result.gates if gate.owner in objects or gate.webhook in refused]


def _refused(moment: Asked, objects: set[str]) -> bool:
    return moment.then == "refused" and moment.object in objects


def _relevant_dependences(result: Result, page: Page) -> list[Dependence]:
    """Resources that a finding points to; verbose, and without findings: all."""
    places = {place for finding in result.findings for place in finding.places}
    if page.verbose or not places:
        return list(result.dependences)
    return [one for one in result.dependences if one.place in places]


def _nothing_found(result: Result) -> Iterator[Line]:
    if result.findings:
        return
    if result.not_rehearsed:
        yield line(Piece("No findings in what was rehearsed. Not everything was: see the first line.", "doubt"))
    elif result.ignored:
        yield line(Piece("No findings but ignored ones (-v lists them).", "good"))
    elif result.not_selected:
        yield line(Piece("No findings of the selected rules.", "good"))
    else:
        yield line(Piece("No findings: after every step the cluster matched the release.", "good"))
    yield ()


def _consumers(found: Sequence[Consumer], page: Page) -> Iterator[Line]:
    """What a change of a library does to the charts that use it; unaffected charts are only counted."""
    if not found:
        return
    affected = [one for one in found if one.helpers or one.flipped or one.changed]
    charts = counted(len(found), "chart that uses the library", "charts that use the library")
    yield line(Piece(f"The change affects {len(affected)} of {charts}{':' if affected else ''}", "strong"))
    for one in affected:
        calls = f" calls {listed(one.helpers)}" if one.helpers else ""
        yield from (line(text) for text in sentences(f"{one.chart}{calls}", page, first="  ", rest="    "))
        changed = [f"{name}: content changes" for name in one.changed]
        for words in (*(difference(flip) for flip in one.flipped), *changed):
            yield from (line(text) for text in sentences(words, page, first="    ", rest="      "))
    yield ()


def _differences(heading: str, found: Sequence[RenderedDifference], page: Page) -> Iterator[Line]:
    """Objects that differ by how the chart is rendered, or by the engine that deploys it."""
    if not found:
        return
    yield line(Piece(heading, "strong"))
    shown = found if page.verbose else list(_unlike(found))[:DIFFERENCES_MAX]
    for one in shown:
        yield from (line(text) for text in sentences(difference(one), page, first="  ", rest="    "))
    if len(shown) < len(found):
        yield line(Piece(f"  and {len(found) - len(shown)} more (-v shows all)", "faint"))
    yield ()


def _unlike(found: Sequence[RenderedDifference]) -> Iterator[RenderedDifference]:
    """Without the third and further ones of a template line: a random name is another one in each rendering."""
    lines: Counter[tuple[str, str]] = Counter()
    for one in found:
        lines[str(one.place), str(one.asked)] += 1
        if one.asked is None or lines[str(one.place), str(one.asked)] <= LIKE_MAX:
            yield one


def _dependences(found: Sequence[Dependence], page: Page) -> Iterator[Line]:
    """What the resources of a Pulumi program depend on as Pulumi sees it, not as the source suggests."""
    if not found:
        return
    yield line(Piece("Dependencies as Pulumi sees them:", "strong"))
    shown = found if page.verbose else found[:DIFFERENCES_MAX]
    for one in shown:
        yield from (line(text) for text in sentences(dependence(one), page, first="  ", rest="    "))
    if len(shown) < len(found):
        yield line(Piece(f"  and {len(found) - len(shown)} more (-v shows all)", "faint"))
    yield ()


def _assumptions(result: Result, page: Page) -> Iterator[Line]:
    """What the result depends on."""
    yield from prerequisites_section(result.prerequisites, page)
    if result.not_modelled and page.verbose:
        text = f"Not modelled (stored, but no controller acts on them): {', '.join(result.not_modelled)}"
        yield from (line(words) for words in sentences(text, page, first="", rest="  "))
    if result.unknown_images and page.verbose:
        text = f"Assumed to succeed and to change nothing: the programs of {', '.join(result.unknown_images)}"
        yield from (line(words) for words in sentences(text, page, first="", rest="  "))
    if result.configuration and page.verbose:
        yield line(f"Configuration: {result.configuration}")
    for note in result.notes:
        yield from (line(Piece(words, "doubt")) for words in sentences(note, page, first="", rest="  "))
    if result.prerequisites or result.notes or (page.verbose and _has_more(result)):
        yield ()


def _has_more(result: Result) -> bool:
    return bool(result.not_modelled or result.unknown_images or result.configuration)


def _last_line(result: Result, page: Page) -> Iterator[Line]:
    """One line; on a narrow page it is folded between its parts."""
    whole = " · ".join(part.replace(" ", NO_BREAK) for part in closing(result).split(" · "))
    for text in quoted(whole, page, first="", rest="  "):
        yield line(Piece(text.replace(NO_BREAK, " "), "strong"))
