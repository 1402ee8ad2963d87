"""The order for Argo CD: waves that raise users above what they need.

Between waves Argo CD waits until everything is healthy. Within a wave it applies by kind (`engines/argocd/tasks.py`),
and it moves CRDs and Namespaces before their first user by itself.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.engines.argocd.fleet import Applications
from seatrial.engines.argocd.tasks import RANKS
from seatrial.generate.order.ordering import GAP, Mark, Ordering, after, annotation
from seatrial.generate.order.requirements import OrderRequirement, requirements, without_cycles
from seatrial.graph.linking import Graph
from seatrial.helm import argocd_hooks
from seatrial.model.resource import Ref

ENGINE = "argocd"
LABEL = "Argo CD"
MOVED_BY_ITSELF = ("CustomResourceDefinition", "Namespace")
ROUNDS_MAX = 1000

Place = tuple[int, int]
"""Phase and wave."""


def ordering(graph: Graph, fleet: Applications | None = None) -> Ordering:
    """Waves count within one Application; `fleet` says which object belongs to which."""
    everything, cycles = without_cycles(requirements(graph))
    home = _homes(fleet)
    found = [one for one in everything if home.get(one.user) == home.get(one.object)]
    across = [one for one in everything if one not in found and one.hard]
    places = {ref: _place(graph, ref) for ref in graph.resources if _place(graph, ref) is not None}
    needed = [one for one in found if one.object.kind not in MOVED_BY_ITSELF]
    needed = [one for one in needed if one.user in places and one.object in places]
    before = {ref: place for ref, place in places.items() if place is not None}
    waves, left = _raised(before, needed)
    _with_first_pod(waves, found)
    marks = tuple(_marks(before, waves, needed))
    by_itself = [one for one in found if one.hard and one.object.kind in MOVED_BY_ITSELF]
    return Ordering(
        LABEL,
        len(graph.resources),
        marks,
        tuple(_given(by_itself)),
        (
            *(_impossible(one) for one in left),
            *_between_applications(across, home),
            *(f"these need one another: {_names(cycle)}" for cycle in cycles),
        ),
    )


def _homes(fleet: Applications | None) -> dict[Ref, Ref]:
    """The Application of each object."""
    apps = () if fleet is None else (*fleet.roots, *fleet.others.values())
    return {target.ref: app.ref for app in apps for target in app.targets}


def _between_applications(across: list[OrderRequirement], home: dict[Ref, Ref]) -> Iterator[str]:
    health = "seatrial generate health Application.argoproj.io"
    for user, needed in sorted({(home[one.user], home[one.object]) for one in across if _known(one, home)}):
        example = next(
            one for one in across if _known(one, home) and (home[one.user], home[one.object]) == (user, needed)
        )
        yield (
            f"{user} needs what {needed} creates ({example.user}: {example.because}): give it a later wave in a common "
            f"parent, with a health check for Applications ({health})"
        )


def _known(one: OrderRequirement, home: dict[Ref, Ref]) -> bool:
    return one.user in home and one.object in home


def _place(graph: Graph, ref: Ref) -> Place | None:
    """The first phase and the wave of an object; None for one that no sync applies."""
    phases = argocd_hooks.phases_of(graph.resources[ref].body)
    known = [argocd_hooks.PHASES.index(phase) for phase in phases if phase in argocd_hooks.PHASES]
    return (min(known), argocd_hooks.wave_of(graph.resources[ref].body)) if known else None


def _raised(
    before: dict[Ref, Place], needed: list[OrderRequirement]
) -> tuple[dict[Ref, Place], list[OrderRequirement]]:
    """The places in which everything comes after what it needs, and what another phase makes impossible."""
    places, left = dict(before), []
    for one in needed:
        if places[one.user][0] < places[one.object][0] and (one.hard or one.ready):
            left.append(one)
    rest = [one for one in needed if places[one.user][0] == places[one.object][0]]
    for _ in range(ROUNDS_MAX):
        changed = False
        for one in rest:
            phase, wave = places[one.user]
            if not _is_met(one, wave, places[one.object][1]):
                places[one.user], changed = (phase, _least(one, places[one.object][1])), True
        if not changed:
            break
    return places, left


def _is_met(one: OrderRequirement, user: int, needed: int) -> bool:
    return user > needed or (user == needed and _same_wave_is_enough(one))


def _least(one: OrderRequirement, wave: int) -> int:
    """The wave of the user, given that of the object."""
    return wave if _same_wave_is_enough(one) else wave + GAP


def _same_wave_is_enough(one: OrderRequirement) -> bool:
    by_kind = RANKS.get(one.object.kind, len(RANKS)) < RANKS.get(one.user.kind, len(RANKS))
    return not one.hard or (by_kind and not one.ready)


def _with_first_pod(places: dict[Ref, Place], found: list[OrderRequirement]) -> None:
    """A PVC is in the wave of its first user: many are bound only when their first pod is scheduled."""
    for pvc in [ref for ref in places if ref.kind == "PersistentVolumeClaim"]:
        users = [places[one.user] for one in found if one.object == pvc and one.user in places]
        if users and places[pvc] < min(users):
            places[pvc] = min(users)


def _marks(before: dict[Ref, Place], places: dict[Ref, Place], needed: list[OrderRequirement]) -> Iterator[Mark]:
    for ref, (_, wave) in sorted(places.items()):
        if wave == before[ref][1]:
            continue
        why = [one for one in needed if one.user == ref and before[one.object][0] == before[ref][0]]
        decisive = [one for one in why if _least(one, places[one.object][1]) == wave]
        reasons = after(decisive) or ("in the wave of its first user: a PVC may be bound only with its first pod",)
        yield annotation(ref, argocd_hooks.WAVE, str(wave), reasons)


def _given(found: list[OrderRequirement]) -> Iterator[str]:
    for kind in dict.fromkeys(one.object.kind for one in found):
        users = {one.user for one in found if one.object.kind == kind}
        words = f"{len(users)} objects" if len(users) > 1 else str(next(iter(users)))
        yield f"{words}: Argo CD applies a {kind} before the first object that needs it"


def _impossible(one: OrderRequirement) -> str:
    phase = "an earlier phase than"
    return (
        f"{one.user} runs in {phase} {one.object}, and {one.because}: make {one.object} a hook of the same phase in a "
        f"lower wave, or {one.user} a hook of a later phase"
    )


def _names(cycle: tuple[Ref, ...]) -> str:
    return ", ".join(map(str, cycle))
