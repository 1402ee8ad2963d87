"""Webhooks that are asked: about what, what they need, and what of it was there, engine by engine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from seatrial.model.result import About, Asked, Gate, Requirement
from seatrial.report.page import Line, Page, Piece, Role, line, quoted, sentences
from seatrial.report.table import table

GATES_MAX = 8
NAMES_MAX = 3
COLUMNS = ("", "step", "is", "definition", "Service", "endpoint", "caBundle", "and is then")
HEADING = "Webhooks that are asked, and what was there when an engine first came to one (lazy schedule):"
THEN = {
    "refused otherwise": "refused, but not by it",
    "not registered": "not asked: it is not registered",
    "let through": "let through unasked",
}
ROLES: dict[str, Role] = {
    "served": "good",
    "there": "good",
    "ready": "good",
    "asked": "good",
    "not served": "doubt",
    "missing": "doubt",
    "none": "doubt",
    "never sent": "doubt",
    "refused": "bad",
    **dict.fromkeys(THEN.values(), "doubt"),
}
AUTHORITIES = {
    "release": ", which is in the release",
    "cert-manager": ", which cert-manager injects",
    "before": "",
    "": ", which nobody was seen to write",
}


def gates_section(found: Sequence[Gate], page: Page) -> Iterator[Line]:
    if not found:
        return
    yield from (line(Piece(text, "strong")) for text in sentences(HEADING, page, first="", rest="  "))
    shown = found if page.verbose else found[:GATES_MAX]
    for gate in shown:
        yield from _gate(gate, page)
    if len(shown) < len(found):
        yield line(Piece(f"  and {len(found) - len(shown)} more (-v shows all)", "faint"))
    yield ()


def _gate(gate: Gate, page: Page) -> Iterator[Line]:
    where = f", {gate.place}" if gate.place else ""
    policy = f"failurePolicy {', then '.join(gate.policies)}" if gate.policies else "no failurePolicy"
    head = f"{gate.webhook} of {gate.owner} ({policy}{where})"
    needs = "; ".join(_need(one, page) for one in gate.needs)
    yield from (line(text) for text in quoted(head, page, first="  ", rest="    "))
    for words in (*(_about(one, page) for one in gate.about), f"needs {needs}"):
        yield from (line(text) for text in sentences(words, page, first="    ", rest="      "))
    yield from _moments(gate.moments, page)


def _about(found: About, page: Page) -> str:
    """`about CREATE, UPDATE of Gate/default/north`"""
    pods = "the pods of " if found.pods else ""
    return f"about {', '.join(found.operations) or 'any use'} of {pods}{_named(found.objects, page)}"


def _need(found: Requirement, page: Page) -> str:
    outside = "" if found.by else " (of no release)"
    match found.what:
        case "definition":
            return f"{found.objects[0]}{outside}, serving {' and '.join(found.versions)}"
        case "service":
            return f"{found.objects[0]}{outside}"
        case "endpoint":
            return f"a ready pod of {_named(found.objects, page)}" if found.objects else "a ready pod behind it"
        case "ca-bundle":
            return f"a caBundle{AUTHORITIES.get(found.by, f', which {found.by} writes')}"
        case "url":
            return f"whoever answers at {found.objects[0] or 'its URL'}"


def _named(names: Sequence[str], page: Page) -> str:
    more = 0 if page.verbose else len(names) - NAMES_MAX
    return f"{', '.join(names[:NAMES_MAX])} and {more} more" if more > 0 else ", ".join(names)


def _moments(moments: Sequence[Asked], page: Page) -> Iterator[Line]:
    if not moments:
        return
    rows = [COLUMNS, *map(_row, moments)]
    kept = [n for n in range(len(COLUMNS)) if any(row[n] != "-" for row in rows[1:])]
    yield from table([[row[n] for n in kept] for row in rows], page, lambda word: ROLES.get(word, ""), indent="    ")


def _row(found: Asked) -> tuple[str, ...]:
    step = "-" if found.step is None else str(found.step + 1)
    there = (found.definition, found.service, found.endpoint, found.ca_bundle)
    return found.engine, step, found.act, *(word or "-" for word in there), THEN.get(found.then, found.then)
