"""Which object must come before which, and why, whatever deploys them. Reads the graph of a release."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise

from msgspec import Struct

from seatrial.graph.linking import BLOCKING, Graph, Link
from seatrial.model.resource import Ref

CYCLES_MAX = 200
RUNS_ONCE = ("Job", "Pod")
"""Kinds that do not try forever: what their program cannot reach makes them fail."""


class OrderRequirement(Struct, frozen=True, order=True):
    """`user` must come after `object`."""

    user: Ref
    object: Ref
    because: str
    ready: bool = False
    """Whether it is not enough that the object exists."""
    hard: bool = True
    """Whether `user` is refused or fails otherwise. If not, Kubernetes retries until the object is there."""
    webhook: Ref | None = None
    """The configuration whose webhook is called for `user`."""


def requirements(graph: Graph) -> list[OrderRequirement]:
    """What the objects of a release require of each other, without cycles."""
    makers = {link.user: link.object for link in graph.links if link.why == "made by"}
    found = set[OrderRequirement]()
    for link in graph.links:
        for one in _of_link(link, graph, makers):
            if one.user != one.object and {one.user, one.object} <= set(graph.resources):
                found.add(one)
    return sorted(found)


def without_cycles(found: Iterable[OrderRequirement]) -> tuple[list[OrderRequirement], list[tuple[Ref, ...]]]:
    """The requirements that can be met together, and the cycles of hard ones that cannot."""
    kept, impossible = sorted(found), list[tuple[Ref, ...]]()
    for _ in range(CYCLES_MAX):
        cycle = _cycle(kept)
        if not cycle:
            break
        pairs = set(pairwise(cycle))
        within = [one for one in kept if (one.user, one.object) in pairs]
        soft = [one for one in within if not one.hard]
        if not soft:
            impossible.append(cycle)
        dropped = (soft or within)[0]
        kept = [one for one in kept if (one.user, one.object) != (dropped.user, dropped.object)]
    return kept, impossible


def _cycle(found: list[OrderRequirement]) -> tuple[Ref, ...]:
    sorter: TopologicalSorter[Ref] = TopologicalSorter()
    for one in found:
        sorter.add(one.user, one.object)
    try:
        sorter.prepare()
    except CycleError as error:
        return tuple(reversed(error.args[1]))
    return ()


def _of_link(link: Link, graph: Graph, makers: dict[Ref, Ref]) -> Iterator[OrderRequirement]:
    match link.why:
        case "namespace":
            yield OrderRequirement(link.user, link.object, f"it is in {link.object}")
        case "definition":
            yield OrderRequirement(link.user, link.object, f"{link.object} defines its kind", ready=True)
        case "webhook":
            yield from _of_webhook(link, graph)
        case "field":
            yield from _of_field(link, graph, makers)
        case "backend" | "made by":
            return


def _of_webhook(link: Link, graph: Graph) -> Iterator[OrderRequirement]:
    """A webhook answers when its configuration, its Service and the pods behind it are there."""
    mutates = link.object.kind == "MutatingWebhookConfiguration"
    if link.optional and not mutates:
        return
    of_pods = " for its pods" if link.field else ""
    because = f"the webhook of {link.object} is called{of_pods}"
    path = [link.object, *_behind(link.object, graph)]
    if link.user in path:
        return  # The webhook is called for its own backend, which no order solves.
    for ref in path:
        yield OrderRequirement(link.user, ref, because, ready=True, webhook=link.object)


def _behind(ref: Ref, graph: Graph) -> Iterator[Ref]:
    """The Services of a webhook configuration, and the workloads behind them."""
    for link in graph.links:
        if link.user == ref and link.gate:
            yield link.object
            yield from _behind(link.object, graph)


def _of_field(link: Link, graph: Graph, makers: dict[Ref, Ref]) -> Iterator[OrderRequirement]:
    if link.optional:
        return
    if link.guess:
        if link.user.kind in RUNS_ONCE and link.object.kind == "Service":
            because = f"it names {link.object} (a guess from its text)"
            behind = [other.object for other in graph.links if other.user == link.object and other.why == "backend"]
            for ref in behind or [link.object]:
                yield OrderRequirement(link.user, ref, because, ready=True)
        return
    needed = makers.get(link.object) if link.object not in graph.resources else link.object
    if needed is None or link.stage not in BLOCKING:
        return
    made = f", which {needed} creates" if needed != link.object else ""
    because = f"it needs {link.object}{made}"
    yield OrderRequirement(link.user, needed, because, ready=bool(made), hard=link.at_apply and not made)
