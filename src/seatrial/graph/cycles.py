"""Objects that wait for one another. Reads a graph; says which way round, and not what to do about it."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter

from seatrial.graph.linking import Graph
from seatrial.model.resource import Ref

CYCLES_MAX = 20


def cycles(graph: Graph) -> list[tuple[Ref, ...]]:
    """Each way round on which everyone waits for the next, from the first by name back to it.

    Only what holds somebody up counts: two Deployments that speak of each other's Services both start.
    """
    needs: dict[Ref, set[Ref]] = {}
    for link in graph.links:
        if link.blocks and link.user != link.object:
            needs.setdefault(link.user, set()).add(link.object)
    found: list[tuple[Ref, ...]] = []
    while len(found) < CYCLES_MAX and (cycle := _cycle(needs)):
        found.append(_from_the_first(cycle))
        needs[cycle[0]].discard(cycle[1])
    return sorted(found)


def _cycle(needs: dict[Ref, set[Ref]]) -> list[Ref]:
    """Some way round, each needing the next, without its return; empty where there is none."""
    ordered = {user: sorted(needs[user]) for user in sorted(needs)}
    try:
        TopologicalSorter(ordered).prepare()
    except CycleError as error:
        # graphlib tells it the other way round: each is needed by the next.
        return list(reversed(error.args[1]))[:-1]
    return []


def _from_the_first(cycle: list[Ref]) -> tuple[Ref, ...]:
    start = cycle.index(min(cycle))
    return (*cycle[start:], *cycle[: start + 1])
