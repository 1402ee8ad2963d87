"""What the invariants find without the rules, on the same rehearsals.

`unseen.yaml` lists the bad stories of which they find nothing, by the reason. The tests hold the list exact.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import yaml
from msgspec import Struct
from story import subjects

from seatrial.model.finding import Finding
from seatrial.rules import all_rules

LIST = Path(__file__).parent / "unseen.yaml"
RULES = frozenset(rule.name for rule in all_rules())


class Judged(Struct, frozen=True):
    """The findings of one check: of rules and invariants, and of invariants without rules."""

    together: list[Finding]
    alone: list[Finding]


def bad_rules(text: str) -> list[str]:
    """The rules of which a story is the bad example."""
    return sorted({rule for rule, twin in subjects(text) if twin == "bad" and rule in RULES})


def listed(story: str) -> list[str]:
    """The rules of a bad story whose hazard the invariants do not find, according to the list."""
    rules = (rule for by_rule in unseen_by_reason().values() for rule in by_rule if story in by_rule[rule])
    return sorted(rules)


def unseen_by_reason() -> dict[str, dict[str, list[str]]]:
    """Stories by reason and rule."""
    found: dict[str, dict[str, list[str]]] = yaml.safe_load(LIST.read_text())
    return found


def is_good(text: str) -> bool:
    """Whether a story is a good example, and no bad one."""
    return {twin for _, twin in subjects(text)} == {"good"}


def only_alone(judged: list[Judged]) -> Iterator[str]:
    """What invariants alone say will do harm in a check that finds nothing of the sort."""
    for one in judged:
        if not any(map(_does_harm, one.together)):
            yield from (finding.message for finding in one.alone if _does_harm(finding))


def unseen(rules: Iterable[str], judged: list[Judged]) -> Iterator[str]:
    """The rules whose finding is about other objects and other steps than those of the invariants."""
    for rule in rules:
        pairs = [(finding, one) for one in judged for finding in one.together if finding.rule == rule]
        if pairs and not any(_is_seen(finding, one.alone) for finding, one in pairs):
            yield rule


def count(stories: Iterable[Path]) -> str:
    """`180 of 207`: the bad examples of rules that the invariants find alone."""
    bad = sum(len(bad_rules(path.read_text())) for path in stories)
    listed_ones = sum(len(names) for by_rule in unseen_by_reason().values() for names in by_rule.values())
    return f"{bad - listed_ones} of {bad}"


def _does_harm(finding: Finding) -> bool:
    return finding.certainty == "will" and finding.damage != "nuisance"


def _is_seen(finding: Finding, alone: list[Finding]) -> bool:
    same_engine = (other for other in alone if not set(other.engines).isdisjoint(finding.engines))
    return any(
        other.step == finding.step or not set(other.objects).isdisjoint(finding.objects) for other in same_engine
    )
