"""One finding: headline, place, events, reasons, and what to type next."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from msgspec.structs import replace

from seatrial.model.finding import Finding, Fix
from seatrial.model.result import Result
from seatrial.model.timeline import Event, Rehearsal
from seatrial.report.events import columns_of, event_lines
from seatrial.report.excerpt import excerpts, gutter_of, where
from seatrial.report.page import Line, Page, Piece, Role, line, quoted, sentences
from seatrial.report.proof import proof_of
from seatrial.report.steps import OUTCOMES
from seatrial.report.wording import after, counted, fix_label, fix_line, listed

EVIDENCE_MAX = 6
"""Events shown for one finding: the first half and the last half."""

DETAIL_MAX = 800
"""Characters of a detail."""

LINES_MAX = 400
"""Characters of a detail of several lines: engines report one error for each of fifty objects in one sentence."""

DIFF_MAX = 14
"""Lines of the diff of a fix that are shown, with its headers."""

CERTAINTIES: dict[str, Role] = {"will": "bad", "likely": "bad", "may": "doubt"}
CLUSTERS = {
    "ordinary": "an ordinary {}",
    "lazy": "a slow {} (lazy schedule)",
    "eager": "a very fast {} (eager schedule)",
}


def in_full(finding: Finding, result: Result, page: Page) -> Iterator[Line]:
    yield from _headline(finding, page)
    yield from excerpts(finding.places, result.excerpts, whole=page.verbose)
    note = " " * (gutter_of(finding.places) + 2)
    yield from _evidence(finding, result, page, note)
    for detail in finding.details:
        yield from _note("", detail if page.verbose else _first_words(detail), page, note)
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
        yield from _fix(finding.fix, page, note)
    yield line(note, Piece("=", "place"), " ", Piece("more:", "strong"), f" seatrial explain {finding.rule}")


def in_brief(finding: Finding, page: Page) -> Iterator[Line]:
    """The headline and the place."""
    yield from _headline(finding, page)
    if finding.places:
        yield line("  ", Piece("-->", "place"), " ", where(finding.places))


def _first_words(detail: str) -> str:
    words = detail.split("\n")[0] if len(detail) > LINES_MAX else detail
    if len(words) > DETAIL_MAX:
        words = words[: words.rfind(" ", 0, DETAIL_MAX)]
    return detail if words == detail else f"{words.rstrip()} ... (-v shows all)"


def _race(finding: Finding) -> str:
    """On which clusters it happens, if that depends on their speed."""
    seen = [cluster for schedule, cluster in CLUSTERS.items() if schedule in finding.schedules]
    spoken = (*finding.schedules, *finding.hidden)
    others = [cluster for schedule, cluster in CLUSTERS.items() if schedule not in spoken]
    if finding.certainty == "will" or not seen or not others:
        return ""
    name = "" if finding.timeless else "a race: "
    if len(seen) == 1:
        return f"{name}it happens only on {seen[0].format('cluster')}"
    first, *more = seen
    happens = " and ".join((first.format("cluster"), *(cluster.format("one") for cluster in more)))
    return f"{name}it happens on {happens}, not on {' or '.join(cluster.format('one') for cluster in others)}"


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


def _fix(fix: Fix, page: Page, indent: str) -> Iterator[Line]:
    """The change in a sentence and as a diff without its headers, if that is short."""
    for words in fix.rejected:
        yield from _note("tried, not enough: ", words, page, indent)
    yield from _note(f"{fix_label(fix)}: ", fix_line(fix), page, indent)
    margin = f"{indent}  "
    numbered = len(fix.steps) > 1
    for number, step in enumerate(fix.steps, start=1):
        head = f"{margin}{number}. " if numbered else margin
        yield from (line(text) for text in sentences(step, page, first=head, rest=f"{margin}{'   ' * numbered}"))
    lines = fix.diff.splitlines()
    if len(lines) > DIFF_MAX and not page.verbose:
        yield line(margin, "seatrial check --diff shows it")
        return
    for text in lines:
        role: Role = "good" if text.startswith("+") else "bad" if text.startswith("-") else ""
        yield line(margin, "  ", Piece(text, role))


def _evidence(finding: Finding, result: Result, page: Page, indent: str) -> Iterator[Line]:
    proof = proof_of(finding, result)
    if proof is None:
        return
    rehearsal, events = proof.played.rehearsal, list(proof.events)
    shown = events if page.verbose else [_once(event, finding) for event in _ends(events)]
    margin = f"{indent}    "
    columns = columns_of(shown, page, indent=margin, depths={})
    for index, group in groupby(shown, lambda event: event.step):
        yield _step_heading(rehearsal, index, indent)
        yield from event_lines(list(group), page, indent=margin, depths={}, columns=columns)
    if len(shown) < len(events):
        left_out = counted(len(events) - len(shown), "event")
        yield line(margin, Piece(f"{left_out} in between not shown (-v shows all)", "faint"))


def _ends(events: list[Event]) -> list[Event]:
    half = EVIDENCE_MAX // 2
    return events if len(events) <= EVIDENCE_MAX else events[:half] + events[-half:]


def _once(event: Event, finding: Finding) -> Event:
    """The event without its message if a sentence of the finding quotes that."""
    quoted_already = event.message and any(event.message in detail for detail in finding.details)
    return replace(event, message="") if quoted_already else event


def _step_heading(rehearsal: Rehearsal, index: int, indent: str) -> Line:
    if not 0 <= index < len(rehearsal.steps):
        return line(indent, Piece("=", "place"), " before the first step:")
    step = rehearsal.steps[index]
    source = f" {step.deploys}" if step.deploys else ""
    outcome = Piece(step.outcome, OUTCOMES[step.outcome])
    return line(indent, Piece("=", "place"), f" step {index + 1}, {step.action}{source} (", outcome, "):")
