"""The way out of every finding: what to change, for this object and in this file. One module per group of rules.

A way out is words, not an edit, and nothing is rehearsed for it. Each module exports `WAYS`, by the names of rules: a
sentence, which may name what `About` knows; a sentence for each engine; or a function.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from msgspec.structs import replace

from seatrial.fix.ways.about import About, Way
from seatrial.model.finding import Finding, Fix
from seatrial.model.release import Case

NOT_MODULES = ("about",)
UNKNOWN = "Read the page of the rule, and start with {object} at {at}."
NOT_REHEARSED = "it is not rehearsed"


@cache
def ways() -> dict[str, Way]:
    """The way out of each rule, by the rule's name."""
    names = (module.name for module in iter_modules(__path__) if module.name not in NOT_MODULES)
    found = (import_module(f"{__name__}.{name}").WAYS for name in names)
    return {rule: way for group in found for rule, way in group.items()}


def with_way_out(finding: Finding, cases: Iterable[Case] = ()) -> Finding:
    """A finding with its way out as a fix without edits; its rule may know a better one than the table."""
    about = About(finding, next((case for case in cases if case.name == finding.case), None))
    first, *steps = finding.way_out or _said(ways().get(finding.rule, UNKNOWN), about)
    if finding.recover:
        steps.append(f"If it has happened: {finding.recover}")
    fix = Fix(first, safe=False, proven=False, why_unsafe=NOT_REHEARSED, steps=tuple(steps))
    return replace(finding, fix=fix)


def _said(way: Way, about: About) -> tuple[str, ...]:
    match way:
        case str():
            return (about.filled(way),)
        case dict():
            return _said(way.get(about.engine) or way[""], about)
        case tuple():
            return tuple(map(about.filled, way))
        case _:
            return _said(way(about), about)
