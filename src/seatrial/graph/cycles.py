"""Objects that wait for one another. Reads a graph and lists its cycles."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter

from seatrial.graph.linking import Graph
from seatrial.model.resource import Ref

CYCLES_MAX = 20


def cycles(graph: Graph) -> list[tuple[Ref, ...]]:
    """Each cycle in which every object waits for the next, starting and ending with its first object by name.

    Only links that block count: two Deployments that refer to each other's Services both start.
    """
    needs: dict[Ref, set[Ref]] = {}
    for link in graph.links:
        if link.blocks and link.user != link.object:
            needs.setdefault(link.user, set()).add(link.object)
    found: list[tuple[Ref, ...]] = []
    while len(found) < CYCLES_MAX and (cycle := _cycle(needs)):
        found.append(_rotated(cycle))
        needs[cycle[0]].discard(cycle[1])
    return sorted(found)


def _cycle(needs: dict[Ref, set[Ref]]) -> list[Ref]:
    """A cycle in which each object needs the next, without the return to its start; empty if there is none."""
    ordered = {user: sorted(needs[user]) for user in sorted(needs)}
    try:
        TopologicalSorter(ordered).prepare()
    except CycleError as error:
        # graphlib returns the reverse: each object is needed by the next.
        return list(reversed(error.args[1]))[:-1]
    return []


def _rotated(cycle: list[Ref]) -> tuple[Ref, ...]:
    start = cycle.index(min(cycle))
    return (*cycle[start:], *cycle[: start + 1])
