"""The order in which objects are applied, and what each waits for: from the graph of the rehearsal. Sends nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from graphlib import CycleError, TopologicalSorter
from heapq import heappop, heappush
from itertools import pairwise

from msgspec import Struct

from seatrial.graph.drawing import path
from seatrial.graph.linking import Graph, Link
from seatrial.helm.kindorder import INSTALL_ORDER
from seatrial.model.release import Resource
from seatrial.model.resource import Ref

CYCLES_MAX = 1_000
LAST = len(INSTALL_ORDER)


class ApplyGate(Struct, frozen=True):
    """What must be usable before an object is applied, and why."""

    object: Ref
    why: str
    key: str = ""
    endpoints: bool = False
    """Whether it is a Service behind a webhook, which must have ready endpoints."""


class ApplyStep(Struct, frozen=True):
    resource: Resource
    gates: tuple[ApplyGate, ...] = ()

    @property
    def ref(self) -> Ref:
        return self.resource.ref


class ApplyOrder(Struct, frozen=True):
    steps: tuple[ApplyStep, ...]
    broken: tuple[Link, ...] = ()
    """Links of cycles that are not waited for."""


def ordered(graph: Graph) -> ApplyOrder:
    """Every object after what it needs; among those that may come next, by Helm's order of kinds and by name."""
    links = {link for link in graph.links if link.blocks and link.user != link.object}
    broken: list[Link] = []
    for _ in range(CYCLES_MAX):
        cycle = _cycle(_needs(links))
        if not cycle:
            break
        weakest = _weakest(cycle, links)
        links -= weakest
        broken += weakest
    needs = _needs(links)
    gates: dict[Ref, dict[ApplyGate, None]] = {}
    for link in sorted(links):
        if gate := _gate(link, graph):
            gates.setdefault(link.user, {})[gate] = None
    refs = (ref for ref in _sorted(needs, graph.resources) if ref in graph.resources)
    return ApplyOrder(
        tuple(ApplyStep(graph.resources[ref], tuple(gates.get(ref, ()))) for ref in refs), tuple(sorted(broken))
    )


def _needs(links: Iterable[Link]) -> dict[Ref, set[Ref]]:
    found: dict[Ref, set[Ref]] = {}
    for link in links:
        found.setdefault(link.user, set()).add(link.object)
    return found


def _cycle(needs: dict[Ref, set[Ref]]) -> list[Ref]:
    try:
        TopologicalSorter(needs).prepare()
    except CycleError as error:
        return list(reversed(error.args[1]))
    return []


def _weakest(cycle: list[Ref], links: set[Link]) -> set[Link]:
    """All links between two objects of a cycle that are the best to give up: the API server does not insist on them."""
    between = [{link for link in links if (link.user, link.object) == pair} for pair in pairwise(cycle)]
    return min(between, key=lambda found: (max(_strength(link) for link in found), min(found)))


def _strength(link: Link) -> int:
    if link.at_apply and link.why in ("namespace", "definition"):
        return 3
    if link.at_apply:
        return 2
    return 0 if link.gate else 1


def _gate(link: Link, graph: Graph) -> ApplyGate | None:
    """What an object waits for before it is applied. Objects outside of the input are not waited for."""
    if link.object not in graph.resources and link.object not in graph.made:
        return None
    match link.why:
        case "backend":
            return None  # What needs the Service waits for its endpoints.
        case "namespace":
            return ApplyGate(link.object, "its namespace")
        case "definition":
            return ApplyGate(link.object, "its CRD")
        case "webhook":
            return ApplyGate(link.object, "a webhook that is called for it")
        case "made by":
            return ApplyGate(link.object, "what creates it")
        case "field":
            why = "the backend of its webhook" if link.gate else f"named in {path(link.field)}"
            return ApplyGate(link.object, why, link.key, endpoints=link.gate)


def _sorted(needs: dict[Ref, set[Ref]], resources: dict[Ref, Resource]) -> Iterator[Ref]:
    """A topological order that does not depend on the order of the input."""
    sorter = TopologicalSorter({ref: needs.get(ref, set()) for ref in {*needs, *resources}})
    sorter.prepare()
    ready: list[tuple[int, Ref]] = []
    while sorter.is_active():
        for ref in sorter.get_ready():
            heappush(ready, (_rank(ref), ref))
        _, ref = heappop(ready)
        yield ref
        sorter.done(ref)


def _rank(ref: Ref) -> int:
    return INSTALL_ORDER.index(ref.kind) if ref.kind in INSTALL_ORDER else LAST
