"""A chart of a Pulumi program is deployed with another resource.

What depends on a `helm.v4.Chart` or a `helm.v3.Release` waits for everything in it, and only a Release runs hooks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from seatrial.fix.calls import is_program
from seatrial.fix.program_charts import CHART, RELEASE, ChartInProgram, deployed_with
from seatrial.fix.program_options import depending, variable_of
from seatrial.fix.proposal import ByHand, Edits, Fixer, Problem, Proposal, TextEdit, joined
from seatrial.model import lazy_re
from seatrial.model.program import CHART_V3, CHART_V4, Program, Registration
from seatrial.model.resource import Place
from seatrial.sources import text_of
from seatrial.text.source import Edit, Span, Text

UNORDERED = "pulumi-component-unordered-or-unawaited"
HOOKS = "pulumi-drops-helm-hooks"
LOOKUP = "plan-time-crd-lookup"
UNSAFE = (
    "in a deployed stack its objects are new resources under the same names: remove the chart first, or import them"
)
RELEASE_TYPE = "kubernetes:helm.sh/v3:Release"
_TYPE = lazy_re.compile(r"(?P<indent>[ ]*)type:[ ]*(?P<quote>[\"']?)kubernetes:helm\.sh/v4:Chart(?P=quote)[ ]*(#.*)?")
_PROPERTIES = lazy_re.compile(r"(?P<indent>[ ]*)properties:[ ]*(?P<flow>\{[ ]*)?.*")


def propose(problem: Problem) -> Iterator[Proposal]:
    program = next((release.program for release in problem.releases() if release.program), None)
    chart = _chart(problem, program) if program else None
    if program is None or chart is None or chart.place is None:
        return
    if problem.finding.rule != UNORDERED:
        yield _proposal(chart, chart.place, RELEASE, ())
        return
    users = _users(problem, program, chart)
    for other in (CHART, RELEASE):
        yield _proposal(chart, chart.place, other, users)


def _proposal(chart: Registration, place: Place, other: ChartInProgram, users: tuple[Place, ...]) -> Proposal:
    change = deployed_with(place, other) if is_program(place.file) else _retyped(chart, place)
    depends = (depending(user, variable_of(chart), ready=False) for user in users)
    return Proposal(f"deploy {chart.name} with {other.title}", joined(change, *depends), UNSAFE)


def _chart(problem: Problem, program: Program) -> Registration | None:
    """The chart that a finding is about."""
    places, every = problem.finding.places, program.registrations
    if problem.finding.rule == UNORDERED:
        return next((one for one in every if one.place in places[1:2] and one.type == CHART_V3), None)
    if problem.finding.rule == LOOKUP:
        return next((one for one in every if one.place in places[:1] and one.type in (CHART_V3, CHART_V4)), None)
    own = {one.parent for one in every if one.ref in problem.finding.objects}
    kinds = (CHART_V3,) if own else (CHART_V4,)
    charts = [one for one in every if one.type in kinds and (not own or one.urn in own)]
    return charts[0] if len(charts) == 1 else None


def _users(problem: Problem, program: Program, chart: Registration) -> tuple[Place, ...]:
    """Where resources of the finding are created that do not name the chart in dependsOn."""
    own = (one for one in program.registrations if one.ref in problem.finding.objects and chart.urn not in one.asked)
    return tuple(dict.fromkeys(one.place for one in own if one.place))


def _retyped(chart: Registration, place: Place) -> Edits | ByHand:
    """A v4.Chart in YAML as a Release of the same name."""
    text = text_of(place.file)
    if text is None:
        return ByHand(f"{place.file} cannot be read again")
    head = text.line_at(place.line)
    below = list(_below(text, place.line, len(head) - len(head.lstrip())))
    kind = next(((at, found) for at in below if (found := _TYPE.fullmatch(text.line_at(at)))), None)
    properties = next(((at, found) for at in below if (found := _PROPERTIES.fullmatch(text.line_at(at)))), None)
    if kind is None or properties is None:
        return ByHand(f"{place} is not a chart that is written as a block")
    at = text.start_of(kind[0]) + text.line_at(kind[0]).index("kubernetes:")
    retyped = Edit(Span(at, at + len(CHART_V4)), RELEASE_TYPE)
    named = () if "name" in chart.inputs else (_named(text, chart.name, *properties),)
    return tuple(TextEdit(text, one) for one in (retyped, *named))


def _named(text: Text, name: str, number: int, found: re.Match[str]) -> Edit:
    if found["flow"]:
        at = text.start_of(number) + found.end("flow")
        return Edit(Span(at, at), f"name: {name}, ")
    at = text.start_of(number + 1)
    own = text.line_at(number + 1)
    return Edit(Span(at, at), f"{own[: len(own) - len(own.lstrip())]}name: {name}\n")


def _below(text: Text, number: int, indent: int) -> Iterator[int]:
    for at in range(number + 1, text.content.count("\n") + 2):
        words = text.line_at(at)
        if words.strip() and len(words) - len(words.lstrip()) <= indent:
            return
        yield at


FIXER = Fixer((UNORDERED, HOOKS, LOOKUP), propose)
