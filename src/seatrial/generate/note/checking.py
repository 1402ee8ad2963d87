"""Statements of a note held against what a rehearsal shows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby

from msgspec import Struct

from seatrial.generate.note.facts import CRDS, REGULAR, Fact, Facts
from seatrial.generate.note.statements import (
    AllPolicies,
    DefaultPolicy,
    OrderStatement,
    Parallel,
    PlaceStatement,
    Statement,
    Survival,
    statements,
)
from seatrial.kinds.operators.table import plural_for

RBAC = ("Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding")
PHASES = {"pre-install": "pre", "PreSync": "pre", REGULAR: "main", "Sync": "main", CRDS: "pre"}


class JudgedStatement(Struct, frozen=True):
    """A statement of a note, and what is so instead; empty if it is right."""

    line: int
    instead: str = ""


def judged(text: str, facts: Facts) -> Iterator[JudgedStatement]:
    """Each statement that is about this release."""
    for statement in statements(text):
        found = _instead(statement, facts)
        if found is not None:
            yield JudgedStatement(statement.line, found)


def _instead(statement: Statement, facts: Facts) -> str | None:
    """What is so instead; empty if the statement is right, None if it is about something else."""
    match statement.claim:
        case PlaceStatement() as claim:
            return _place(claim, facts)
        case OrderStatement() as claim:
            return _order(claim, facts)
        case Survival() as claim:
            return _survival(claim, facts)
        case Parallel(at_once=at_once):
            if facts.engine != "helm":
                return None
            words = "Helm runs the hooks of an event one at a time: by weight, then by name"
            return words if at_once else ""
        case DefaultPolicy():
            if not any(fact.hook for fact in facts.objects):
                return None
            return "a hook without a delete policy has the default before-hook-creation: it is deleted and recreated"
        case AllPolicies(policy=policy):
            hooks = [fact for fact in facts.objects if fact.hook]
            others = [fact for fact in hooks if policy not in fact.policies]
            if not hooks:
                return None
            return f"{_some(others)} has {', '.join(others[0].policies)}" if others else ""


def _place(claim: PlaceStatement, facts: Facts) -> str | None:
    about = _subjects(claim.subject, facts)
    if not about:
        return None
    wrong = [fact for fact in about if not _is_there(fact, claim)]
    if not wrong:
        return ""
    fact = wrong[0]
    word = "wave" if facts.engine == "argocd" else "weight"
    weight = f", {word} {fact.weight}" if fact.hook or facts.engine == "argocd" else ""
    phase = "a regular resource" if fact.phase == REGULAR else "in crds/" if fact.phase == CRDS else fact.phase
    return f"{_some(wrong)} is {phase}{weight}"


def _is_there(fact: Fact, claim: PlaceStatement) -> bool:
    phase = PHASES.get(fact.phase, "post")
    same_phase = not claim.phase or phase == claim.phase
    counts = fact.hook or fact.phase in ("Sync", "PreSync", "PostSync")
    return same_phase and (claim.weight is None or (counts and fact.weight == claim.weight))


def _order(claim: OrderStatement, facts: Facts) -> str | None:
    first = [fact for fact in _subjects(claim.first, facts) if fact.order is not None]
    then = [fact for fact in _subjects(claim.then, facts) if fact.order is not None]
    if not first or not then or {fact.ref for fact in first} & {fact.ref for fact in then}:
        return None
    late, early = max(first, key=_at), min(then, key=_at)
    return "" if _at(late) < _at(early) else f"{early.ref} is created before {late.ref}"


def _at(fact: Fact) -> int:
    return fact.order or 0


def _survival(claim: Survival, facts: Facts) -> str | None:
    about = _subjects(claim.subject, facts)
    about = [fact for fact in about if (fact.upgraded if claim.when == "upgrade" else fact.removed)]
    if not about:
        return None
    if claim.when == "upgrade":
        stays = claim.happens == "kept"
        wrong = [fact for fact in about if (fact.upgraded == "kept") is not stays]
        if not wrong:
            return ""
        what = "deleted and created again" if wrong[0].upgraded in ("recreated", "runs again") else wrong[0].upgraded
        return f"{_some(wrong)} is {what} by the next {'sync' if facts.engine == 'argocd' else 'upgrade'}"
    wrong = [fact for fact in about if (fact.removed == "left") is not (claim.happens == "left")]
    verb = {"left": "left behind", "deleted": "deleted"}
    return f"{_some(wrong)} is {verb[wrong[0].removed or 'deleted']} by the removal" if wrong else ""


def _some(found: Sequence[Fact]) -> str:
    refs = list(dict.fromkeys(str(fact.ref) for fact in found))
    return refs[0] if len(refs) == 1 else f"{refs[0]} (and {len(refs) - 1} more)"


def _subjects(text: str, facts: Facts) -> list[Fact]:
    """The objects that a text names: by their full name, otherwise by their kind."""
    named = [fact for fact in facts.objects if re.search(rf"(?<![\w/-]){re.escape(str(fact.ref))}(?![\w-])", text)]
    if named:
        return named
    left = f" {re.sub(r'[^a-z]+', ' ', text.lower())} "
    found = list[Fact]()
    by_kind = [(key, list(same)) for key, same in groupby(sorted(facts.objects, key=_kind), key=_kind)]
    for (group, kind), same in sorted(by_kind, key=lambda entry: -len(_spaced(entry[0][1]))):
        forms = [_spaced(kind), kind.lower(), plural_for(group, kind)]
        forms += ["crd"] if kind == "CustomResourceDefinition" else ["rbac"] if kind in RBAC else []
        pattern = rf"\b(?:{'|'.join(map(re.escape, forms))})s?\b"
        if re.search(pattern, left):
            found += same
            # "external secrets" names no Secret.
            left = left if kind in RBAC else re.sub(pattern, " ", left)
    return found


def _spaced(kind: str) -> str:
    """`external secret`"""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", kind).lower()


def _kind(fact: Fact) -> tuple[str, str]:
    return fact.ref.group, fact.ref.kind
