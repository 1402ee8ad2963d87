"""Options of resources in Pulumi programs: what they depend on, how they are replaced, and what a destroy retains."""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.fix.calls import is_program
from seatrial.fix.program_options import depending, variable_of, with_option
from seatrial.fix.proposal import ByHand, Edits, Fixer, Problem, Proposal, TextEdit, joined
from seatrial.model import lazy_re
from seatrial.model.program import CHART_V3, KUBERNETES, LOCAL_COMPONENTS, Registration, effective, inside_of
from seatrial.model.resource import Place, Ref, name_of
from seatrial.phrases.outcome import first_named
from seatrial.sources import text_of
from seatrial.text.source import Edit, Span

YAML = (".yaml", ".yml")
RENAMED = "pulumi-rename-without-alias"
WEBHOOK = "webhook-not-ready-race"
REPLACED = "pulumi-deletes-the-replacement"
NAMESPACE = "chart-owned-namespace-deleted"
PULUMI = "pulumi"
LEFT = "pulumi destroy leaves it in the cluster with everything in it, and deleting it is then up to you"
_KEY = lazy_re.compile(r"(?P<indent>[ ]*)(?P<key>[\w-]+):(?P<rest>.*)")


def propose(problem: Problem) -> Iterator[Proposal]:
    finding = problem.finding
    first = next(iter(finding.places), None)
    if first is None or not (first.file.endswith(YAML) or is_program(first.file)):
        return
    if finding.rule == RENAMED:
        old = _known_as(problem)
        if old is not None:
            yield Proposal(f"add the alias {old.name} to {finding.objects[0]}", _with_alias(first, old))
        return
    if finding.rule == REPLACED:
        yield Proposal(
            f"replace {finding.objects[0]} only after the old one is deleted",
            _with(first, ("delete_before_replace", "True"), ("deleteBeforeReplace", "true")),
        )
        return
    if finding.rule == NAMESPACE:
        if all(engine.name == PULUMI for engine in finding.engines):
            change = _with(first, ("retain_on_delete", "True"), ("retainOnDelete", "true"))
            yield Proposal(f"retain {finding.objects[0]} on delete", change, LEFT)
        return
    yield from _ordered(problem, first)


def _with(place: Place, python: tuple[str, str], other: tuple[str, str]) -> Edits | ByHand:
    """An option in the language of the program; YAML has the names of TypeScript."""
    if is_program(place.file):
        return with_option(place, python, other)
    return _with_option(place, ": ".join(other))


def _ordered(problem: Problem, first: Place) -> Iterator[Proposal]:
    component = _component(problem)
    if component is None:
        return
    local = component.type in LOCAL_COMPONENTS
    if not is_program(first.file):
        if not local:
            lines = ("dependsOn:", f"  - ${{{component.name}}}")
            yield Proposal(f"let {problem.finding.objects[0]} depend on {component.name}", _with_option(first, *lines))
        return
    name = variable_of(component)
    if local and component.type != CHART_V3:
        return
    users = _users(problem, component, first)
    refs = [one.ref for one in users if one.ref]
    if not refs:  # All depend on it already, and it is not awaited.
        return
    places = dict.fromkeys(one.place for one in users if one.place)
    change = joined(*(depending(place, name, ready=local) for place in places))
    if not name:
        change = ByHand(f"{component.place} gives {component.name} no name in the program")
    on = f"everything in {component.name} ({name}.ready)" if local else component.name
    yield Proposal(f"let {first_named(refs)} depend on {on}", change)


def _users(problem: Problem, component: Registration, first: Place) -> list[Registration]:
    """The resources of the finding, and others of their kind that do not wait either. Not those of the component."""
    program = next(release.program for release in problem.releases() if release.program)
    inside = inside_of(program.registrations).get(component.urn, set()) | {component.urn}
    named = problem.finding.objects
    own = [one for one in program.registrations if one.ref in named or one.place == first]
    kinds = {(one.ref.group, one.ref.kind) for one in own if one.ref}
    alike = [one for one in program.registrations if one.ref and (one.ref.group, one.ref.kind) in kinds]
    return [one for one in alike if one.urn not in inside and not inside & effective(program, one)]


def _with_alias(place: Place, old: Registration) -> Edits | ByHand:
    if not is_program(place.file):
        return _with_option(place, f'aliases: ["{old.urn}"]')
    return with_option(
        place, ("aliases", f'[pulumi.Alias(name="{old.name}")]'), ("aliases", f'[{{ name: "{old.name}" }}]')
    )


def _registrations(problem: Problem) -> list[list[Registration]]:
    """Of each program of the trial, newest first."""
    return [list(release.program.registrations) for release in problem.releases() if release.program]


def _component(problem: Problem) -> Registration | None:
    """The resource or component that must come first, unless it contains the other."""
    places, programs = problem.finding.places, _registrations(problem)
    every = programs[0] if programs else []
    if problem.finding.rule == WEBHOOK:
        found = next((one for one in every if _brings(one, problem.finding.objects[0])), None)
        component = _outermost(every, found) if found else None
    else:
        component = next((one for one in every if len(places) > 1 and one.place == places[1]), None)
    own = next((one for one in every if one.place == places[0]), None)
    if component is None or own is None or component.urn == own.urn:
        return None
    return None if own.urn in inside_of(every).get(component.urn, ()) else component


def _brings(one: Registration, ref: Ref) -> bool:
    """Whether a resource is an object, or a Release that contains it."""
    return one.ref == ref or any((body["kind"], name_of(body)) == (ref.kind, ref.name) for body in one.contents)


def _outermost(every: list[Registration], one: Registration) -> Registration:
    """The component of a provider that contains a resource, or the resource."""
    by_urn = {other.urn: other for other in every}
    while (parent := by_urn.get(one.parent)) is not None and parent.type.startswith(KUBERNETES):
        one = parent
    return one


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


FIXER = Fixer(("pulumi-component-unordered-or-unawaited", RENAMED, REPLACED, WEBHOOK, NAMESPACE), propose)
