"""What a finding says below its headline, as plain lines for the formats of machines. Lays out nothing."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from msgspec import Struct

from seatrial.model.finding import Finding, Fix
from seatrial.model.resource import Place
from seatrial.model.result import Result
from seatrial.model.timeline import Event, Rehearsal
from seatrial.report.events import is_absent
from seatrial.report.proof import Proof, proof_of
from seatrial.report.untrusted import clean, one_line
from seatrial.report.wording import after, counted, fix_label, fix_line, listed

EVENTS_MAX = 6
PLACES_MAX = 4
MESSAGE_MAX = 300
"""Characters of an error; its beginning says what is wrong."""


class Explanation(Struct, frozen=True):
    """Each line is clean: untrusted text can be written as it is, but for the syntax of the format."""

    where: tuple[str, ...]
    happens: tuple[str, ...]
    """`Step 2, upgrade ./v2:`, and below it, indented, the events."""
    why: tuple[str, ...]
    fix: tuple[str, ...]
    """The change in a sentence, then numbered steps."""
    fix_label: str
    confirm: str

    def lines(self, *, where: bool = False) -> Iterator[str]:
        """All of it as text; the places only if asked for, since most formats have them as data."""
        if where and self.where:
            yield f"Where: {', '.join(self.where)}"
        yield from self.happens
        yield from self.why
        if self.fix:
            first, *steps = self.fix
            yield f"{self.fix_label}: {first}"
            yield from (f"  {step}" for step in steps)
        if self.confirm:
            yield f"Confirm: {self.confirm}"


def explanation(finding: Finding, result: Result) -> Explanation:
    fix = finding.fix
    proof = proof_of(finding, result)
    return Explanation(
        where=tuple(_where(finding)),
        happens=tuple(_happens(proof)) if proof else (),
        why=tuple(map(one_line, _why(finding, result))),
        fix=tuple(map(one_line, _fix(fix))) if fix else (),
        fix_label=fix_label(fix).capitalize() if fix else "",
        confirm=clean(finding.confirm),
    )


def _fix(fix: Fix) -> Iterator[str]:
    yield fix_line(fix)
    numbered = len(fix.steps) > 1
    yield from (f"{number}. {step}" if numbered else step for number, step in enumerate(fix.steps, start=1))


def headline(finding: Finding) -> str:
    return one_line(finding.message)


def rating(finding: Finding) -> str:
    """`will, outage`; what a removal does by design says so, and what is known."""
    apart = (", on removal" if finding.removal else "") + (", known" if finding.known else "")
    return f"{finding.certainty}, {finding.damage}{apart}"


def place(found: Place) -> str:
    return one_line(found.file if found.sure == "file" else str(found))


def _where(finding: Finding) -> Iterator[str]:
    places = [place(found) for found in finding.places]
    yield from places[:PLACES_MAX]
    if more := places[PLACES_MAX:]:
        yield f"and {len(more)} more"


def _happens(proof: Proof) -> Iterator[str]:
    events = proof.events
    half = EVENTS_MAX // 2
    shown = events if len(events) <= EVENTS_MAX else (*events[:half], *events[-half:])
    for number, group in groupby(shown, lambda event: event.step):
        yield f"{one_line(_step(number, proof.played.rehearsal))}:"
        yield from (f"  {one_line(_event(event))}" for event in group)
    if len(shown) < len(events):
        yield f"({counted(len(events) - len(shown), 'event')} in between not shown)"


def _step(number: int, rehearsal: Rehearsal) -> str:
    if not 0 <= number < len(rehearsal.steps):
        return "Before the first step"
    step = rehearsal.steps[number]
    return f"Step {number + 1}, {step.action}{f' {step.deploys}' if step.deploys else ''}"


def _event(event: Event) -> str:
    message = " ".join(event.message.split())
    cut = f"{message[:MESSAGE_MAX]} ..." if len(message) > MESSAGE_MAX else message
    if event.effect == "said":
        return f"{event.actor} about {event.object}: {cut}"
    if is_absent(event):
        return f"{event.actor} {event.verb} {event.object}: not found"
    return f"{event.actor} {event.verb} {event.object}: {event.effect}{f', {cut}' if cut else ''}"


def _why(finding: Finding, result: Result) -> Iterator[str]:
    yield from finding.details
    if len({played.rehearsal.engine for played in result.played}) > 1:
        yield f"Engines: {listed([*map(str, finding.engines)])}."
    if finding.case:
        yield f"With {finding.case}."
    if finding.after:
        yield f"It shows {after(finding)}."
