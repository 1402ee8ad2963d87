"""Annotations that make an engine deploy in order, from the graph of a release; only where the engine does not."""

from __future__ import annotations

from difflib import get_close_matches
from typing import NoReturn

from seatrial.engines.act import Reconcile, Sync
from seatrial.engines.engine import names
from seatrial.generate.order import argocd, flux, helm, named
from seatrial.generate.order.ordering import Ordering
from seatrial.graph.linking import Graph, graph_of
from seatrial.model.errors import CannotContinue
from seatrial.plan.plan import Plan

OTHERS = ("kapp", "cli-utils")
"""Tools that are not rehearsed, and whose annotations are known."""


def groups(target: str) -> bool:
    """Whether an engine groups objects into applications of its own: then it reads the input."""
    return target in (argocd.ENGINE, flux.ENGINE)


def order(target: str, plan: Plan) -> tuple[Ordering, Graph]:
    """What to add for an engine, and the graph that it was inferred from."""
    newest = {(release.namespace, release.name): release for release in plan.case.releases if release is not None}
    releases = list(newest.values())
    graph = graph_of(releases)
    match target:
        case "helm":
            return helm.ordering(graph, frozenset(crd.ref for one in releases for crd in one.crds)), graph
        case "argocd":
            fleet = next((step.act.fleet for step in plan.steps if isinstance(step.act, Sync)), None)
            return argocd.ordering(graph, fleet), graph
        case "kapp":
            return named.of_kapp(graph), graph
        case "cli-utils":
            return named.of_cli_utils(graph), graph
        case "pulumi":
            program = next((one.program for one in releases if one.program is not None), None)
            found = named.of_cli_utils(graph, "Pulumi") if program is None else named.of_program(graph, program)
            return found, graph
        case "flux":
            act = next((step.act for step in plan.steps if isinstance(step.act, Reconcile)), None)
            if act is None:
                raise CannotContinue("--for flux: the input contains nothing that Flux reconciles")
            return flux.ordering(graph, act.fleet), graph
        case _:
            return _refused(target)


def _refused(target: str) -> NoReturn:
    if target in names():
        raise CannotContinue(f"--for {target}: it applies objects in the order of the input, and reads no annotation")
    known = (*names(), *OTHERS)
    close = get_close_matches(target, known, n=1)
    hint = f"did you mean {close[0]}?" if close else f"use one of {', '.join(known)}"
    raise CannotContinue(f"--for {target}: {hint}")
