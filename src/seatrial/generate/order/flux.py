"""The order for Flux: which Kustomization or HelmRelease depends on which. Within one of them there is none.

A Kustomization is Ready when its objects are applied; only with `wait: true` when they are ready. Its CRDs, Namespaces
and classes come first by themselves. `dependsOn` names objects of the same kind only.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from seatrial.engines.flux.objects import FluxObjects, HelmRelease, Kustomization
from seatrial.generate.order.ordering import Mark, Ordering, after
from seatrial.generate.order.requirements import OrderRequirement, requirements, without_cycles
from seatrial.graph.linking import Graph
from seatrial.model.resource import Ref

ENGINE = "flux"
LABEL = "Flux"
BY_ITSELF = ("CustomResourceDefinition", "Namespace")
STAGES_MAX = 20


class Unit(Struct, frozen=True):
    """A Kustomization or HelmRelease, and the objects in it."""

    ref: Ref
    waits: bool
    depends_on: frozenset[Ref]
    objects: frozenset[Ref]


def ordering(graph: Graph, fleet: FluxObjects) -> Ordering:
    found, cycles = without_cycles(requirements(graph))
    units = [*map(_unit, fleet.kustomizations.values()), *map(_unit, fleet.releases.values())]
    home = {ref: unit for unit in units for ref in unit.objects}
    hard = [one for one in found if one.hard and one.user in home and one.object in home]
    across = [one for one in hard if home[one.user].ref != home[one.object].ref]
    within = [one for one in hard if home[one.user].ref == home[one.object].ref and not _is_given(one)]
    left = [*_to_split(within, home), *(f"these need one another: {', '.join(map(str, cycle))}" for cycle in cycles)]
    return Ordering(LABEL, len(units), tuple(_marks(across, home)), (), tuple(left))


def _unit(one: Kustomization | HelmRelease) -> Unit:
    targets = one.targets if isinstance(one, Kustomization) else (*one.everything, *one.hooks)
    waits = one.wait if isinstance(one, Kustomization) else one.install.waits
    return Unit(one.ref, waits, frozenset(one.depends_on), frozenset(target.ref for target in targets))


def _is_given(one: OrderRequirement) -> bool:
    return one.object.kind in BY_ITSELF or one.object.kind.endswith("Class")


def _marks(across: list[OrderRequirement], home: dict[Ref, Unit]) -> Iterator[Mark]:
    """A `dependsOn` for each unit that lacks one, and `wait` where readiness counts."""
    waiting: dict[Ref, list[OrderRequirement]] = {}
    depending: dict[Ref, dict[Ref, list[OrderRequirement]]] = {}
    for one in across:
        user, target = home[one.user], _of_kind(home[one.object], home[one.user].ref.kind, home)
        if target is None or target.ref == user.ref:
            continue
        if target.ref not in user.depends_on:
            depending.setdefault(user.ref, {}).setdefault(target.ref, []).append(one)
        if (one.ready or target.ref != home[one.object].ref) and not target.waits:
            waiting.setdefault(target.ref, []).append(one)
    known = {unit.ref: unit for unit in home.values()}
    for ref, found in sorted(depending.items()):
        names = [_named(other, ref) for other in sorted({*known[ref].depends_on, *found})]
        yield Mark(ref, ("spec", "dependsOn"), names, after(one for ones in found.values() for one in ones))
    for ref, ones in sorted(waiting.items()):
        users = sorted({str(one.user) for one in ones})
        reason = f"Ready only when its objects are ready, which {users[0]} needs"
        yield Mark(ref, ("spec", "wait"), True, (reason,))


def _of_kind(unit: Unit, kind: str, home: dict[Ref, Unit]) -> Unit | None:
    """The unit of this kind that contains an object: itself, or the one that applies it."""
    for _ in range(STAGES_MAX):
        if unit.ref.kind == kind:
            return unit
        above = home.get(unit.ref)
        if above is None:
            return None
        unit = above
    return None


def _named(other: Ref, user: Ref) -> dict[str, str]:
    return {"name": other.name} | ({"namespace": other.namespace} if other.namespace != user.namespace else {})


def _to_split(within: list[OrderRequirement], home: dict[Ref, Unit]) -> Iterator[str]:
    for unit in sorted({home[one.user].ref for one in within}):
        mine = [one for one in within if home[one.user].ref == unit]
        users = sorted({str(one.user) for one in mine})
        some = ", ".join(users[:3]) + (f" and {len(users) - 3} more" if users[3:] else "")
        needs = "they need" if users[1:] else "it needs"
        yield (
            f"{unit} contains {some} and what {needs} ({after(mine)[0]}): move {users[0]} to a Kustomization of its "
            f"own with dependsOn: [{{name: {unit.name}}}], and set wait: true here"
        )
