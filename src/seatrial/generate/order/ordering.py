"""What an engine needs so that it deploys in order. Data, and how it is written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any

import msgspec
from msgspec import Struct

from seatrial.generate.order.requirements import OrderRequirement
from seatrial.generate.yamltext import comment, document
from seatrial.model.release import Resource
from seatrial.model.resource import Ref

GAP = 5
"""Between two weights or waves, so that something fits between them later."""
REASONS_MAX = 3
PROGRAM = "Program"
"""Marks of a Pulumi program are about the program: its resources are fields of it."""
WORKLOADS = ("Deployment", "StatefulSet", "DaemonSet")


class Mark(Struct, frozen=True):
    """One field to set on one object, and why."""

    ref: Ref
    path: tuple[str, ...]
    value: Any
    reasons: tuple[str, ...]


class Ordering(Struct, frozen=True):
    engine: str
    """As in sentences: `Argo CD`."""
    objects: int
    marks: tuple[Mark, ...] = ()
    given: tuple[str, ...] = ()
    """What needs no mark because the engine does it, each a sentence."""
    left: tuple[str, ...] = ()
    """What no annotation can order, each a sentence with the way out."""


def annotation(ref: Ref, key: str, value: str, reasons: Iterable[str]) -> Mark:
    return Mark(ref, ("metadata", "annotations", key), value, tuple(reasons))


def after(found: Iterable[OrderRequirement]) -> tuple[str, ...]:
    """The reasons of an object, one sentence for each cause."""
    ordered = sorted(found, key=lambda one: (one.because, one.object))
    sentences = []
    for because, same in groupby(ordered, key=lambda one: one.because):
        grouped = list(same)
        names = " and ".join(str(one.object) for one in _needed_last(grouped))
        state = "ready" if any(one.ready for one in grouped) else "there"
        sentences.append(f"after {names} is {state}: {because}")
    more = len(sentences) - REASONS_MAX
    return (*sentences[:REASONS_MAX], *((f"and {more} more reasons",) if more > 0 else ()))


def _needed_last(found: list[OrderRequirement]) -> list[OrderRequirement]:
    """Of the path of a webhook, the workloads: they are ready last."""
    last = [one for one in found if one.webhook and one.object.kind in WORKLOADS]
    return last or found


def patches(ordering: Ordering, resources: Mapping[Ref, Resource]) -> str:
    """The marks as patches for kustomize, which also say what to write into a chart by hand."""
    marked = [
        _document(ref, list(marks), resources)
        for ref, marks in groupby(sorted(ordering.marks, key=lambda mark: mark.ref), key=lambda mark: mark.ref)
    ]
    head = "".join(f"{line}\n" for line in _head(ordering, len(marked)))
    return "---\n".join([head + (marked[0] if marked else ""), *marked[1:]])


def as_json(ordering: Ordering) -> str:
    """The same for programs."""
    found = {
        "version": 1,
        "engine": ordering.engine,
        "objects": ordering.objects,
        "marks": [
            {"object": str(m.ref), "group": m.ref.group, "path": m.path, "value": m.value, "reasons": m.reasons}
            for m in ordering.marks
        ],
        "given": ordering.given,
        "left": ordering.left,
    }
    return msgspec.json.format(msgspec.json.encode(found), indent=2).decode() + "\n"


def _head(ordering: Ordering, marked: int) -> Iterator[str]:
    some = f"{marked} of {ordering.objects} objects need" if marked != 1 else f"1 of {ordering.objects} objects needs"
    yield from comment(f"{some} an order that {ordering.engine} does not give by itself.")
    if ordering.given:
        yield from comment("No annotation is needed for these:")
        yield from (line for text in ordering.given for line in comment(f"- {text}"))
    if ordering.left:
        yield from comment("No annotation orders these:")
        yield from (line for text in ordering.left for line in comment(f"- {text}"))


def _document(ref: Ref, marks: list[Mark], resources: Mapping[Ref, Resource]) -> str:
    body: dict[str, Any] = {} if ref.kind == PROGRAM else _named(ref, resources)
    for mark in marks:
        into = body
        for part in mark.path[:-1]:
            into = into.setdefault(part, {})
        into[mark.path[-1]] = mark.value
    return document(body, {mark.path: mark.reasons for mark in marks})


def _named(ref: Ref, resources: Mapping[Ref, Resource]) -> dict[str, Any]:
    meta: dict[str, Any] = {"name": ref.name} | ({"namespace": ref.namespace} if ref.namespace else {})
    version = resources[ref].body.get("apiVersion") if ref in resources else ref.group
    return {"apiVersion": version, "kind": ref.kind, "metadata": meta}
