"""The page of a kind. Decides nothing."""

from __future__ import annotations

from collections.abc import Iterator
from string import ascii_lowercase

from seatrial.explain.kinds import PODS_REFUSED, STAGES, KindNeed, KindTopic
from seatrial.explain.readiness import FAILS, WAITS
from seatrial.report.page import Line, Page, Piece, Role, line, printed, sentences
from seatrial.report.table import table

INDENT = "  "
ROLES: dict[str, Role] = {WAITS: "doubt", FAILS: "bad", "Progressing": "doubt", "Degraded": "bad", "no": "doubt"}


def render(topic: KindTopic, page: Page) -> str:
    return printed(_lines(topic, page), page)


def _lines(topic: KindTopic, page: Page) -> Iterator[Line]:
    yield line(Piece(topic.kind, "strong"), f" ({topic.group})" if topic.group else "")
    yield ()
    yield from _facts(topic, page)
    if topic.needs:
        yield from _heading("Needs")
        rows = [(_missing(need), _kind(need.kind, optional=need.optional), need.field) for need in topic.needs]
        yield from table([("without it", "object", "named in"), *rows], page, lambda cell: "", indent=INDENT)
    yield from _states(topic, page)
    yield from _heading("Order of creation")
    yield from table([("engine", "place"), *topic.order.items()], page, lambda cell: "", indent=INDENT)
    yield from _list("Immutable fields", topic.immutable, page)
    yield from _list("Deletion waits for finalizers", topic.finalizers, page)
    yield from _list("Rules (seatrial explain NAME)", topic.rules, page)


def _facts(topic: KindTopic, page: Page) -> Iterator[Line]:
    scope = "Namespaced." if topic.namespaced else "Cluster-scoped."
    brought = {"Kubernetes": "Part of Kubernetes.", "": "A custom resource of no known operator."}
    origin = brought.get(topic.brought_by, f"Its CRD and its controller come with {topic.brought_by}.")
    facts = [
        f"{scope} {origin} Also called {', '.join(topic.names)}.",
        f"It leads to: {', '.join(topic.produces)}, once its controller runs." if topic.produces else "",
        *(f"Webhook for each write: {webhook}" for webhook in topic.webhooks),
        f"Same name in other groups: {', '.join(topic.others)}" if topic.others else "",
    ]
    for fact in facts:
        yield from (line(words) for words in sentences(fact, page, first="", rest=INDENT) if fact)


def _states(topic: KindTopic, page: Page) -> Iterator[Line]:
    """States are columns with letters, so that the table fits."""
    yield from _heading("When an engine that waits for it continues")
    for letter, state in zip(ascii_lowercase, topic.states, strict=False):
        yield line(f"{INDENT}{letter}  {state.when}")
    engines = topic.states[0].verdicts
    head = ("", *ascii_lowercase[: len(topic.states)])
    rows = [(engine, *(state.verdicts[engine] for state in topic.states)) for engine in engines]
    yield from table([head, *rows], page, lambda cell: ROLES.get(cell, ""), indent=INDENT)


def _list(heading: str, entries: tuple[str, ...], page: Page) -> Iterator[Line]:
    if entries:
        yield from _heading(heading)
        yield from (line(words) for words in sentences(", ".join(entries), page, first=INDENT, rest=INDENT))


def _heading(text: str) -> Iterator[Line]:
    yield ()
    yield line(Piece(f"{text}:", "strong"))


def _missing(need: KindNeed) -> str:
    return PODS_REFUSED if need.stage == "admit" and ".template." in need.field else STAGES[need.stage]


def _kind(kind: str, *, optional: bool) -> str:
    return f"{kind} (optional)" if optional else kind
