"""A graph as text: a tree for users, Graphviz, Mermaid and JSON. Makes no decisions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import groupby

import msgspec

from seatrial.graph.cycles import cycles
from seatrial.graph.linking import Graph, Link
from seatrial.kinds.operators.table import operator_kinds
from seatrial.model.resource import Ref, Resolve

INDENT = "  "
ABOVE = "(above)"
USERS_MAX = 3
DEPTH_MAX = 100
HIDDEN = ("namespace", "definition")
"""Links that nearly every object has: not shown in a tree, except as prerequisites."""


def tree(graph: Graph) -> Iterator[str]:
    """Under each object what it needs, each object once; then the prerequisites and the cycles."""
    shown = [link for link in graph.links if link.why not in HIDDEN]
    needs = {user: list(links) for user, links in groupby(shown, key=lambda link: link.user)}
    needed = {link.object for link in shown}
    roots = [ref for ref in sorted(graph.resources) if ref not in needed]
    shown_refs: set[Ref] = set()
    for ref in (*roots, *sorted(graph.resources)):
        if ref not in shown_refs:
            yield from _branch(graph, needs, ref, "", "", shown_refs)
    yield from _prerequisites(graph)
    for cycle in cycles(graph):
        yield ""
        yield "Each of these waits for the next:"
        yield from (f"{INDENT}{ref}" for ref in cycle)


def dot(graph: Graph) -> Iterator[str]:
    yield "digraph release {"
    yield "  rankdir=LR; node [shape=box];"
    for ref in _all(graph):
        yield f"  {_quoted(str(ref))}{_dot_style(graph, ref)};"
    for link in graph.links:
        dashed = ", style=dashed" if link.optional or link.guess else ""
        yield f"  {_quoted(str(link.user))} -> {_quoted(str(link.object))} [label={_quoted(_label(link))}{dashed}];"
    yield "}"


def mermaid(graph: Graph) -> Iterator[str]:
    yield "flowchart LR"
    names = {ref: f"n{index}" for index, ref in enumerate(_all(graph))}
    for ref, name in names.items():
        shape = '["{}"]' if ref in graph.resources else '(["{}"])' if ref in graph.made else '{{{{"{}"}}}}'
        yield f"  {name}{shape.format(_escaped(str(ref)))}"
    for link in graph.links:
        arrow = "-.->" if link.optional or link.guess else "-->"
        yield f'  {names[link.user]} {arrow}|"{_escaped(_label(link))}"| {names[link.object]}'


def json(graph: Graph, resolve: Resolve) -> Iterator[str]:
    """Stable and versioned, like all JSON output."""
    shown_refs = {
        "version": 1,
        "objects": [
            {"object": str(ref), "group": ref.group, "from": _origin(graph, ref), **_written(graph, ref, resolve)}
            for ref in _all(graph)
        ],
        "links": [_link(link) for link in graph.links],
        "prerequisites": [{"object": str(ref), "why": _why(links)} for ref, links in graph.outside().items()],
        "cycles": [[str(ref) for ref in cycle] for cycle in cycles(graph)],
    }
    yield msgspec.json.format(msgspec.json.encode(shown_refs), indent=2).decode()


TEXTS: dict[str, Callable[[Graph], Iterator[str]]] = {"tree": tree, "dot": dot, "mermaid": mermaid}


def drawn(graph: Graph, form: str, resolve: Resolve) -> Iterator[str]:
    return json(graph, resolve) if form == "json" else TEXTS[form](graph)


def _branch(
    graph: Graph, needs: dict[Ref, list[Link]], ref: Ref, indent: str, mark: str, shown_refs: set[Ref]
) -> Iterator[str]:
    links = needs.get(ref, [])
    where = "" if ref in graph.resources or ref in graph.made else "  (prerequisite)"
    above = f"  {ABOVE}" if links and ref in shown_refs else ""
    yield f"{indent}{mark}{ref}{where}{above}"
    if ref in shown_refs or len(indent) > DEPTH_MAX * len(INDENT):
        return
    shown_refs.add(ref)
    for target, group in groupby(links, key=lambda link: link.object):
        marks = dict.fromkeys(_mark(link) for link in group)
        yield from _branch(graph, needs, target, indent + INDENT, f"{', '.join(marks)}: ", shown_refs)


def _mark(link: Link) -> str:
    words = {"webhook": "calls", "backend": "selects", "made by": "created by"}.get(link.why, link.stage)
    if link.stage == "admit" and not link.at_apply and not link.optional:
        # Its pods are rejected, not the object itself.
        words += " for its pods"
    return f"{words}{', optional' if link.optional else ''}{', a guess' if link.guess else ''}"


def _prerequisites(graph: Graph) -> Iterator[str]:
    outside = graph.outside()
    if outside:
        yield ""
        yield "Prerequisites, assumed to exist:"
        for ref, links in outside.items():
            yield f"{INDENT}{ref}: {_why(links)}"


def _why(links: list[Link]) -> str:
    users = list(dict.fromkeys(str(link.user) for link in links))
    more = f" and {len(users) - USERS_MAX} more" if len(users) > USERS_MAX else ""
    operator = _operator(links)
    usual = f"; operator: {operator}" if operator else ""
    return f"for {', '.join(users[:USERS_MAX])}{more}{usual}"


def _operator(links: list[Link]) -> str:
    """The operator that usually installs the CRD of a kind."""
    for link in links:
        key = (link.user.group, link.user.kind) if link.why == "definition" else (link.object.group, link.object.kind)
        if key in operator_kinds():
            return operator_kinds()[key][0].name
    return ""


def _all(graph: Graph) -> list[Ref]:
    linked = (ref for link in graph.links for ref in (link.user, link.object))
    return sorted({*graph.resources, *graph.made, *linked})


def _origin(graph: Graph, ref: Ref) -> str:
    return "release" if ref in graph.resources else "made" if ref in graph.made else "outside"


def _written(graph: Graph, ref: Ref, resolve: Resolve) -> dict[str, object]:
    """The file and line of an object of the release."""
    if ref not in graph.resources:
        return {}
    place = resolve(graph.resources[ref].place())
    return {"file": place.file, "line": place.line}


def _link(link: Link) -> dict[str, object]:
    return {
        "user": str(link.user),
        "object": str(link.object),
        "why": link.why,
        "stage": link.stage,
        "field": path(link.field),
        "at_apply": link.at_apply,
        "blocks": link.blocks,
        "optional": link.optional,
        "guess": link.guess,
    }


def path(field: tuple[str | int, ...]) -> str:
    """`spec.rules[0].host`"""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in field)
    return text.removeprefix(".")


def _label(link: Link) -> str:
    return link.why if link.why != "field" else f"{link.stage}{', a guess' if link.guess else ''}"


def _dot_style(graph: Graph, ref: Ref) -> str:
    styles = {"release": "", "made": " [style=rounded]", "outside": " [style=dashed]"}
    return styles[_origin(graph, ref)]


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _escaped(text: str) -> str:
    return text.replace("#", "#35;").replace('"', "#quot;")
