"""The report for people: the steps, each finding with its place and its evidence, and what was assumed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from seatrial.model.finding import Finding, Fix
from seatrial.model.result import Consumer, Dependence, Difference, Prerequisite, Result
from seatrial.model.timeline import Event, Rehearsal
from seatrial.report import concise
from seatrial.report.agreement import agreement_section
from seatrial.report.compared import compared_section
from seatrial.report.events import columns_of, event_lines
from seatrial.report.excerpt import excerpts, gutter_of
from seatrial.report.gates import gates_section
from seatrial.report.not_rehearsed import not_rehearsed
from seatrial.report.page import Line, Page, Piece, Role, line, printed, quoted, sentences
from seatrial.report.standings import standings_table
from seatrial.report.steps import OUTCOMES, steps_table
from seatrial.report.wording import after, closing, counted, dependence, difference, is_partial, listed

FULL_MAX = 30
"""Findings shown in full; the rest take one line each."""
EVIDENCE_MAX = 12
"""Events shown for one finding: the first half and the last half."""
PREREQUISITES_MAX = 12
DIFFERENCES_MAX = 20
REMOVAL = "When it is removed (by design; fails a check only with --fail-on-removal):"

NO_BREAK = "\xa0"
CERTAINTIES: dict[str, Role] = {"will": "bad", "likely": "bad", "may": "doubt"}
CLUSTERS = {
    "ordinary": "an ordinary {}",
    "lazy": "a slow {} (lazy schedule)",
    "eager": "a very fast {} (eager schedule)",
}


def render(result: Result, page: Page) -> str:
    return printed(_report(result, page), page)


def _report(result: Result, page: Page) -> Iterator[Line]:
    yield from not_rehearsed(result, page)
    if not page.quiet:
        yield from steps_table(result.played, page)
        yield from standings_table("Engines compared", result.standings, page)
        yield ()
    ordered = sorted(result.findings, key=lambda finding: finding.removal)
    shown = ordered if page.verbose else ordered[:FULL_MAX]
    for removal, findings in groupby(shown, lambda finding: finding.removal):
        if removal:
            yield line(Piece(REMOVAL, "strong"))
            yield ()
        for finding in findings:
            yield from _finding(finding, result, page)
            yield ()
    if rest := ordered[len(shown) :]:
        yield line(f"and {counted(len(rest), 'more finding', 'more findings')}, one line each (-v shows all in full):")
        yield from concise.lines(rest)
        yield ()
    if not page.quiet:
        yield from _nothing_found(result)
        yield from compared_section(result.comparison, page)
        yield from agreement_section(result.agreements, page)
        yield from _consumers(result.consumers, page)
        yield from _differences("Objects that differ between renderings:", result.differences, page)
        yield from _differences("Objects that engines treat differently:", result.contrasts, page)
        yield from _dependences(result.dependences, page)
        yield from gates_section(result.gates, page)
        yield from _assumptions(result, page)
        yield from _last_line(result, page)


def _finding(finding: Finding, result: Result, page: Page) -> Iterator[Line]:
    yield from _headline(finding, page)
    yield from excerpts(finding.places, result.excerpts)
    note = " " * (gutter_of(finding.places) + 2)
    yield from _evidence(finding, result, page, note)
    for detail in finding.details:
        yield from _note("", detail, page, note)
    if race := _race(finding):
        yield from _note(f"{finding.certainty}: ", race, page, note)
    if len({played.rehearsal.engine for played in result.played}) > 1:
        yield from _note("engines: ", listed([*map(str, finding.engines)]), page, note)
    if finding.after:
        yield from _note("after: ", after(finding), page, note)
    if finding.case:
        yield from _note("with: ", finding.case, page, note)
    if finding.confirm:
        yield line(note, Piece("=", "place"), " ", Piece("confirm:", "strong"), f" {finding.confirm}")
    if finding.fix:
        yield from _note("fix: ", _fix(finding.fix), page, note)


def _race(finding: Finding) -> str:
    """On which clusters it happens, if that depends on their speed."""
    seen = [where for schedule, where in CLUSTERS.items() if schedule in finding.schedules]
    spoken = (*finding.schedules, *finding.hidden)
    others = [where for schedule, where in CLUSTERS.items() if schedule not in spoken]
    if finding.certainty == "will" or not seen or not others:
        return ""
    first, *more = seen
    happens = " and ".join((first.format("cluster"), *(where.format("one") for where in more)))
    name = "" if finding.timeless else "a race: "
    return f"{name}it happens on {happens}, not on {' or '.join(where.format('one') for where in others)}"


def _headline(finding: Finding, page: Page) -> Iterator[Line]:
    start = f"{finding.rule} ({finding.code}) {finding.certainty}, {finding.damage}: "
    head, *more = quoted(start + finding.message, page, first="", rest="    ")
    certain = f"{finding.certainty}, {finding.damage}:"
    yield line(
        Piece(finding.rule, "strong"),
        f" ({finding.code}) ",
        Piece(certain, CERTAINTIES[finding.certainty]),
        Piece(head[len(start) - 1 :], "strong"),
    )
    yield from (line(Piece(text, "strong")) for text in more)


def _note(label: str, text: str, page: Page, indent: str) -> Iterator[Line]:
    margin = f"{indent}  "
    first, *more = sentences(text, page, first=f"{margin}{label}", rest=margin)
    yield line(indent, Piece("=", "place"), " ", Piece(label, "strong"), first[len(margin) + len(label) :])
    yield from (line(text) for text in more)


def _fix(fix: Fix) -> str:
    proof = ", proven by rehearsing again" if fix.proven else ", not proven"
    return f"{fix.title} ({'safe' if fix.safe else 'unsafe'}{proof})"


def _evidence(finding: Finding, result: Result, page: Page, indent: str) -> Iterator[Line]:
    rehearsal = _rehearsal_of(finding, result)
    if rehearsal is None:
        return
    wanted = set(finding.evidence)
    events = [event for event in rehearsal.timeline if event.index in wanted]
    shown = events if page.verbose else _ends(events)
    margin = f"{indent}    "
    columns = columns_of(shown, page, indent=margin, depths={})
    for index, group in groupby(shown, lambda event: event.step):
        yield _step_heading(rehearsal, index, indent)
        yield from event_lines(list(group), page, indent=margin, depths={}, columns=columns)
    if len(shown) < len(events):
        left_out = counted(len(events) - len(shown), "event")
        yield line(margin, Piece(f"{left_out} in between not shown (-v shows all)", "faint"))


def _rehearsal_of(finding: Finding, result: Result) -> Rehearsal | None:
    """The rehearsal that a finding's evidence refers to; with several inputs, the one that has its objects."""
    found = [
        played.rehearsal
        for played in (*result.played, *result.continued)
        if played.case == finding.case
        and played.rehearsal.repaired == finding.after
        and played.rehearsal.engine in finding.engines[:1]
        and played.rehearsal.schedule in (finding.schedules[:1] or (played.rehearsal.schedule,))
    ]
    return min(found, key=lambda rehearsal: not _shows(rehearsal, finding), default=None)


def _shows(rehearsal: Rehearsal, finding: Finding) -> bool:
    wanted, objects = set(finding.evidence), set(finding.objects)
    return any(event.index in wanted and event.object in objects for event in rehearsal.timeline)


def _ends(events: list[Event]) -> list[Event]:
    half = EVIDENCE_MAX // 2
    return events if len(events) <= EVIDENCE_MAX else events[:half] + events[-half:]


def _step_heading(rehearsal: Rehearsal, index: int, indent: str) -> Line:
    if not 0 <= index < len(rehearsal.steps):
        return line(indent, Piece("=", "place"), " before the first step:")
    step = rehearsal.steps[index]
    source = f" {step.source}" if step.source else ""
    outcome = Piece(step.outcome, OUTCOMES[step.outcome])
    return line(indent, Piece("=", "place"), f" step {index + 1}, {step.action}{source} (", outcome, "):")


def _nothing_found(result: Result) -> Iterator[Line]:
    if result.findings:
        return
    if is_partial(result):
        yield line(Piece("No findings in what was rehearsed. Not everything was: see the first line.", "doubt"))
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


def _differences(heading: str, found: Sequence[Difference], page: Page) -> Iterator[Line]:
    """Objects that differ by how the chart is rendered, or by the engine that deploys it."""
    if not found:
        return
    yield line(Piece(heading, "strong"))
    shown = found if page.verbose else found[:DIFFERENCES_MAX]
    for one in shown:
        yield from (line(text) for text in sentences(difference(one), page, first="  ", rest="    "))
    if len(shown) < len(found):
        yield line(Piece(f"  and {len(found) - len(shown)} more (-v shows all)", "faint"))
    yield ()


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
    if result.prerequisites:
        yield line(Piece("Prerequisites (not in the release, assumed to exist):", "strong"))
        yield from _prerequisites(result.prerequisites, page)
    if result.not_modelled:
        text = f"Not modelled (stored, but no controller acts on them): {', '.join(result.not_modelled)}"
        yield from (line(words) for words in sentences(text, page, first="", rest="  "))
    for note in result.notes:
        yield from (line(Piece(words, "doubt")) for words in sentences(note, page, first="", rest="  "))
    if result.prerequisites or result.not_modelled or result.notes:
        yield ()


def _last_line(result: Result, page: Page) -> Iterator[Line]:
    """One line; on a narrow page it is folded between its parts."""
    whole = " · ".join(part.replace(" ", NO_BREAK) for part in closing(result).split(" · "))
    for text in quoted(whole, page, first="", rest="  "):
        yield line(Piece(text.replace(NO_BREAK, " "), "strong"))


def _prerequisites(found: Sequence[Prerequisite], page: Page) -> Iterator[Line]:
    shown = found if page.verbose else found[:PREREQUISITES_MAX]
    for one in shown:
        subject = f"{one.operator} must be installed" if one.operator else one.object
        yield from (line(t) for t in sentences(f"{subject}: {one.why}", page, first="  ", rest="    "))
    if len(shown) < len(found):
        yield line(Piece(f"  and {len(found) - len(shown)} more (-v shows all)", "faint"))
