"""The order for engines whose objects name what they depend on: kapp, cli-utils and Pulumi.

All of them apply a Namespace and a CRD before what needs it. kapp also calls a webhook again that does not answer yet.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from seatrial.generate.order.ordering import PROGRAM, Mark, Ordering, after, annotation
from seatrial.generate.order.requirements import OrderRequirement, requirements, without_cycles
from seatrial.graph.linking import Graph
from seatrial.model.program import KUBERNETES, Program, Registration, effective
from seatrial.model.resource import Ref, name_of

DEPENDS_ON = "config.kubernetes.io/depends-on"
CHANGE_GROUP = "kapp.k14s.io/change-group"
CHANGE_RULE = "kapp.k14s.io/change-rule"
BY_ITSELF = ("CustomResourceDefinition", "Namespace")


def of_cli_utils(graph: Graph, label: str = "cli-utils") -> Ordering:
    """`config.kubernetes.io/depends-on`, which yaml.v2 and helm.v4.Chart of Pulumi read as well."""
    found, cycles = _needed(graph)
    marks = [
        annotation(
            user, DEPENDS_ON, ",".join(_reference(ref) for ref in sorted({one.object for one in why})), after(why)
        )
        for user, why in _by_user(found)
    ]
    return _ordering(label, graph, marks, cycles)


def of_kapp(graph: Graph) -> Ordering:
    """A change group on what is needed, and a change rule on its user."""
    found, cycles = _needed(graph)
    retried = [one for one in found if one.webhook and one.webhook.kind.startswith("Validating")]
    found = [one for one in found if one not in retried]
    marks = list[Mark]()
    for needed in sorted({one.object for one in found}):
        users = sorted({str(one.user) for one in found if one.object == needed})
        marks.append(annotation(needed, CHANGE_GROUP, _group(needed), (f"needed by {' and '.join(users[:3])}",)))
    for user, why in _by_user(found):
        for index, ref in enumerate(sorted({one.object for one in why})):
            rule = f"upsert after upserting {_group(ref)}"
            reasons = after(one for one in why if one.object == ref)
            marks.append(annotation(user, f"{CHANGE_RULE}.{index}" if index else CHANGE_RULE, rule, reasons))
    given = (f"{ref}: kapp retries while a webhook does not answer" for ref in sorted({one.user for one in retried}))
    return _ordering("kapp", graph, marks, cycles, tuple(given))


def of_program(graph: Graph, program: Program) -> Ordering:
    """`dependsOn` for the resources of a program, by their names in it. What a chart contains is named by the chart."""
    found, cycles = without_cycles(requirements(graph))
    own_of = {one.ref: one for one in program.registrations if one.ref is not None and one.custom}
    marks = list[Mark]()
    for user, why in _by_user([one for one in found if one.hard]):
        own = own_of.get(user)
        if own is None:
            continue
        done = effective(program, own)
        owners = {one: _owner(program, one.object) for one in why}
        lacking = [one for one, other in owners.items() if other and other.urn not in (own.urn, *done)]
        names = sorted({f"${{{_outermost(program, other).name}}}" for one in lacking if (other := owners[one])})
        if names:
            path = ("resources", own.name, "options", "dependsOn")
            marks.append(Mark(Ref(PROGRAM, "", program.project), path, names, after(lacking)))
    return _ordering("Pulumi", graph, marks, cycles)


def _owner(program: Program, ref: Ref) -> Registration | None:
    """The resource that creates an object: the object itself, or the Release whose chart contains it."""
    for one in program.registrations:
        bodies = (*one.contents, *one.definitions)
        if one.custom and (one.ref == ref or any((b.get("kind"), name_of(b)) == (ref.kind, ref.name) for b in bodies)):
            return one
    return None


def _outermost(program: Program, one: Registration) -> Registration:
    """The component of the provider that contains a resource, or the resource."""
    while (parent := program.find(one.parent) if one.parent else None) and parent.type.startswith(KUBERNETES):
        one = parent
    return one


def _needed(graph: Graph) -> tuple[list[OrderRequirement], list[tuple[Ref, ...]]]:
    found, cycles = without_cycles(requirements(graph))
    return [one for one in found if one.hard and one.object.kind not in BY_ITSELF], cycles


def _by_user(found: list[OrderRequirement]) -> Iterator[tuple[Ref, list[OrderRequirement]]]:
    for user, why in groupby(sorted(found), key=lambda one: one.user):
        yield user, list(why)


def _ordering(
    label: str, graph: Graph, marks: list[Mark], cycles: list[tuple[Ref, ...]], given: tuple[str, ...] = ()
) -> Ordering:
    left = tuple(f"these need one another: {', '.join(map(str, cycle))}" for cycle in cycles)
    return Ordering(label, len(graph.resources), tuple(marks), given, left)


def _reference(ref: Ref) -> str:
    """`apps/namespaces/default/Deployment/gate`; the core group is empty."""
    where = f"namespaces/{ref.namespace}/" if ref.namespace else ""
    return f"{ref.group}/{where}{ref.kind}/{ref.name}"


def _group(ref: Ref) -> str:
    """A name of kapp's form: a DNS name, then a path."""
    where = f"{ref.namespace}-" if ref.namespace else ""
    return f"seatrial.dev/{ref.kind.lower()}-{where}{ref.name}"
