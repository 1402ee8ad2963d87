"""A note as Markdown: the phases as a diagram, every object in a table, and what survives what."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from seatrial.generate.note.facts import CRDS, REGULAR, Fact, Facts

NODES_MAX = 80
NAMED_MAX = 12
STORES = ("PersistentVolumeClaim", "Namespace", "CustomResourceDefinition")


def note(facts: Facts) -> str:
    return "\n".join(_lines(facts)) + "\n"


def _lines(facts: Facts) -> Iterator[str]:
    again, removal = facts.again, facts.removal
    yield f"# What {facts.label} does with {facts.name}"
    yield ""
    yield "Written by `seatrial generate note` from a rehearsal; `seatrial generate note --check` reads it again."
    for words in facts.failed:
        yield ""
        yield f"**A step does not end well**: {_inline(words)}"
    yield ""
    yield "```mermaid"
    yield from _diagram(facts)
    yield "```"
    yield ""
    yield f"| # | phase | {_weight_word(facts)} | object | needs | on {again} | on {removal} |"
    yield "|---|---|---|---|---|---|---|"
    yield from (_row(fact, facts) for fact in facts.objects)
    yield ""
    yield "## What survives"
    yield ""
    yield from _survival(facts, again, removal)


def _diagram(facts: Facts) -> Iterator[str]:
    yield "flowchart TB"
    names = {id(fact): f"n{index}" for index, fact in enumerate(facts.objects[:NODES_MAX])}
    groups = [(key, list(group)) for key, group in groupby(facts.objects[:NODES_MAX], key=lambda f: _place(f, facts))]
    for number, (place, group) in enumerate(groups):
        yield f'  subgraph p{number}["{number + 1}. {_mermaid(place)}"]'
        yield from (f'    {names[id(fact)]}["{_mermaid(str(fact.ref))}"]' for fact in group)
        yield "  end"
    yield from (f"  p{number} --> p{number + 1}" for number in range(len(groups) - 1))
    known = {fact.ref: names[id(fact)] for fact in facts.objects[:NODES_MAX]}
    drawn = dict.fromkeys(
        (names[id(fact)], known[need.object])
        for fact in facts.objects[:NODES_MAX]
        for need in fact.needs
        if need.hard and need.object in known
    )
    yield from (f"  {user} -. needs .-> {needed}" for user, needed in drawn)
    if facts.objects[NODES_MAX:]:
        yield f'  more["and {len(facts.objects) - NODES_MAX} more"]'


def _place(fact: Fact, facts: Facts) -> str:
    if fact.order is None:
        return "not reached"
    if fact.phase in (CRDS, REGULAR) and facts.engine != "argocd":
        return "crds/" if fact.phase == CRDS else "regular resources"
    return f"{fact.phase}, {_weight_word(facts)} {fact.weight}"


def _row(fact: Fact, facts: Facts) -> str:
    weight = "" if fact.phase in (CRDS, REGULAR) and facts.engine != "argocd" else str(fact.weight)
    needs = ", ".join(dict.fromkeys(f"{need.object}" for need in fact.needs))
    policies = f" ({', '.join(fact.policies)})" if fact.hook else ""
    order = "" if fact.order is None else str(fact.order)
    cells = (order, fact.phase + policies, weight, f"`{fact.ref}`", needs, fact.upgraded, fact.removed)
    return f"| {' | '.join(_cell(cell) for cell in cells)} |"


def _survival(facts: Facts, again: str, removal: str) -> Iterator[str]:
    recreated = [fact for fact in facts.objects if fact.upgraded == "recreated"]
    left = [fact for fact in facts.objects if fact.removed == "left"]
    stores = [fact for fact in facts.objects if fact.removed == "deleted" and fact.ref.kind in STORES]
    gone = [fact for fact in facts.objects if fact.upgraded == "deleted"]
    if gone:
        yield f"- Deleted by every {again}, and not created again: {_named(gone)}."
    if recreated:
        yield f"- Recreated by every {again}: {_named(recreated)}."
    if left:
        yield f"- Left after {removal}: {_named(left)}."
    if stores:
        yield f"- Deleted by {removal} with what they hold: {_named(stores)}."
    others = len(facts.objects) - len({fact.ref for fact in (*gone, *recreated, *left, *stores)})
    if others and not facts.failed:
        words = f"{others} objects are" if others > 1 else "1 object is"
        yield f"- {words} kept by every {again} and deleted by {removal}."


def _named(found: list[Fact]) -> str:
    names = [f"`{fact.ref}`" for fact in found]
    more = f" and {len(names) - NAMED_MAX} more" if names[NAMED_MAX:] else ""
    return ", ".join(names[:NAMED_MAX]) + more


def _weight_word(facts: Facts) -> str:
    return "wave" if facts.engine == "argocd" else "weight"


def _cell(text: str) -> str:
    return _inline(text).replace("|", "\\|")


def _inline(text: str) -> str:
    return " ".join(text.split())


def _mermaid(text: str) -> str:
    return text.replace("#", "#35;").replace('"', "#quot;")
