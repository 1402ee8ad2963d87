"""Webhooks that are called: for which objects, what they need, and what of it was ready, engine by engine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from seatrial.model.result import Asked, CalledFor, Gate, Requirement
from seatrial.report.page import Line, Page, Piece, Role, line, quoted, sentences
from seatrial.report.table import table

GATES_MAX = 8
NAMES_MAX = 3
COLUMNS = ("", "step", "request", "CRD", "Service", "endpoint", "caBundle", "result")
HEADING = "Webhooks called during the trial, and whether their backend was ready at the first call (ordinary cluster):"
REQUESTS = {"made": "create", "deleted": "delete"}
PRESENT = {"there": "present"}
RESULTS = {
    "asked": "called",
    "refused otherwise": "refused for another reason",
    "not registered": "not called: not registered",
    "let through": "call failed, ignored",
}
ROLES: dict[str, Role] = {
    "served": "good",
    "present": "good",
    "ready": "good",
    "called": "good",
    "not served": "doubt",
    "missing": "doubt",
    "none": "doubt",
    "never sent": "doubt",
    "refused": "bad",
    "refused for another reason": "doubt",
    "not called: not registered": "doubt",
    "call failed, ignored": "doubt",
}
CA_BUNDLE_SOURCES = {
    "release": " (in the release)",
    "cert-manager": " (injected by cert-manager)",
    "before": "",
    "": " (never written)",
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


def _about(found: CalledFor, page: Page) -> str:
    """`called for CREATE, UPDATE of Gate/default/north`"""
    pods = "the pods of " if found.pods else ""
    operations = f"{', '.join(found.operations)} of" if found.operations else "any request for"
    return f"called for {operations} {pods}{_named(found.objects, page)}"


def _need(found: Requirement, page: Page) -> str:
    outside = "" if found.by else " (in no release)"
    match found.what:
        case "definition":
            return f"{found.objects[0]}{outside}, serving {' and '.join(found.versions)}"
        case "service":
            return f"{found.objects[0]}{outside}"
        case "endpoint":
            return f"a ready pod of {_named(found.objects, page)}" if found.objects else "a ready pod behind it"
        case "ca-bundle":
            return f"a caBundle{CA_BUNDLE_SOURCES.get(found.by, f' (written by {found.by})')}"
        case "url":
            return f"a server at {found.objects[0] or 'its URL'}"


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
    backend = (found.definition, found.service, found.endpoint, found.ca_bundle)
    states = (PRESENT.get(state, state) if state else "-" for state in backend)
    return found.engine, step, REQUESTS[found.act], *states, RESULTS.get(found.then, found.then)
