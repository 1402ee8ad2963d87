"""Options of resources in Pulumi YAML: what they depend on, and under which name the state knows them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from seatrial.fix.proposal import ByHand, Edits, Fixer, Problem, Proposal, TextEdit
from seatrial.model.program import LOCAL_COMPONENTS, Registration, inside_of
from seatrial.model.resource import Place
from seatrial.sources import text_of
from seatrial.text.source import Edit, Span

YAML = (".yaml", ".yml")
RENAMED = "pulumi-rename-without-alias"
_KEY = re.compile(r"(?P<indent>[ ]*)(?P<key>[\w-]+):(?P<rest>.*)")


def propose(problem: Problem) -> Iterator[Proposal]:
    finding = problem.finding
    first = next(iter(finding.places), None)
    if first is None or not first.file.endswith(YAML):
        return
    if finding.rule == RENAMED:
        old = _known_as(problem)
        if old is not None:
            yield Proposal(
                f"add the alias {old.name} to {finding.objects[0]}", _with_option(first, f'aliases: ["{old.urn}"]')
            )
        return
    on = _depended_on(problem)
    if on is not None:
        lines = ("dependsOn:", f"  - ${{{on.name}}}")
        yield Proposal(f"let {finding.objects[0]} depend on {on.name}", _with_option(first, *lines))


def _registrations(problem: Problem) -> list[list[Registration]]:
    """Of each program of the trial, newest first."""
    return [list(release.program.registrations) for release in problem.releases() if release.program]


def _depended_on(problem: Problem) -> Registration | None:
    """The resource that must come first, unless it is a component that adds no dependency, or contains the other."""
    places, programs = problem.finding.places, _registrations(problem)
    every = programs[0] if programs else []
    component = next((one for one in every if len(places) > 1 and one.place == places[1]), None)
    own = next((one for one in every if one.place == places[0]), None)
    if component is None or own is None or component.type in LOCAL_COMPONENTS:
        return None
    return None if own.urn in inside_of(every).get(component.urn, ()) else component


def _known_as(problem: Problem) -> Registration | None:
    """The resource of an earlier program that has the same object, or the one that is deleted."""
    new, *earlier = _registrations(problem)
    urns = {one.urn for one in new}
    gone = [one for program in earlier for one in program if one.urn not in urns and one.custom]
    return next((one for ref in problem.finding.objects for one in gone if one.ref == ref), None)


def _with_option(place: Place, *option: str) -> Edits | ByHand:
    """The option below the type of the resource whose key is at a place."""
    text = text_of(place.file)
    head = _KEY.fullmatch(text.line_at(place.line)) if text else None
    if text is None or head is None or head["rest"].strip():
        return ByHand(f"{place} is not a resource that is written as a block")
    number, at, indent = place.line + 1, 0, 0
    lines = text.content.count("\n") + 1
    while number <= lines:
        words_there = text.line_at(number)
        found = _KEY.fullmatch(words_there)
        if words_there.strip() and len(words_there) - len(words_there.lstrip()) <= len(head["indent"]):
            break
        if found and found["key"] == "options":
            return ByHand(f"{place.file}:{number} has options already")
        if found and found["key"] == "type" and not at:
            at, indent = number, len(found["indent"])
        number += 1
    if not at:
        return ByHand(f"{place} has no type")
    offset = text.start_of(at + 1)
    added = ("options:", *(f"  {words}" for words in option))
    return (TextEdit(text, Edit(Span(offset, offset), "".join(f"{' ' * indent}{words}\n" for words in added))),)


FIXER = Fixer(("pulumi-component-unordered-or-unawaited", RENAMED), propose)
