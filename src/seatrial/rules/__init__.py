"""One module, one hazard: its page (the docstring), its check, its fix. Rules read timelines, cases and graphs.

`invariants/` holds what is checked after the rules, because it depends on what they found; `ignoring/` what is checked
last, because it depends on what of it is reported; `interruptions/` what is checked of steps that die.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib import import_module
from inspect import getdoc
from pkgutil import walk_packages
from types import ModuleType
from typing import TypeVar

from seatrial.model.acceptance import Audit
from seatrial.model.finding import Invariant, Rule
from seatrial.model.interruption import InterruptionRule

T = TypeVar("T", Rule, Invariant, Audit, InterruptionRule)

Explained = Rule | Invariant | Audit | InterruptionRule
"""Everything that a finding can be named after."""
AUDITS = "ignoring"
"""The folder of what is applied to every result, also to one that was not rehearsed now."""
EXPORTS = ("RULE", "INVARIANT", "AUDIT", "INTERRUPTION")


@cache
def all_rules() -> tuple[Rule, ...]:
    """Every rule of this folder, by code."""
    return tuple(_sorted(module.RULE for module in _modules().values() if hasattr(module, "RULE")))


@cache
def all_invariants() -> tuple[Invariant, ...]:
    """Every invariant of this folder, by code."""
    return tuple(_sorted(module.INVARIANT for module in _modules().values() if hasattr(module, "INVARIANT")))


@cache
def all_audits() -> tuple[Audit, ...]:
    """Every audit of this folder, by code."""
    return tuple(_sorted(module.AUDIT for module in _modules(AUDITS).values() if hasattr(module, "AUDIT")))


@cache
def all_interruption_rules() -> tuple[InterruptionRule, ...]:
    """Every rule on steps that die, by code."""
    return tuple(_sorted(module.INTERRUPTION for module in _modules().values() if hasattr(module, "INTERRUPTION")))


def all_explained() -> tuple[Explained, ...]:
    """Everything that a finding can be named after, by code: each has a page."""
    every: tuple[Explained, ...] = (*all_invariants(), *all_audits(), *all_rules(), *all_interruption_rules())
    return tuple(sorted(every, key=lambda one: one.code))


def page(rule: Explained) -> str:
    """What the rule's module says of itself."""
    return getdoc(_modules(AUDITS if isinstance(rule, Audit) else "")[rule.name]) or ""


@cache
def _modules(folder: str = "") -> dict[str, ModuleType]:
    """The module of each rule, invariant and audit, by its name; of one folder, without importing the others."""
    inside = f".{folder}." if folder else "."
    paths = [f"{path}/{folder}" for path in __path__]
    found = (import_module(found.name) for found in walk_packages(paths, f"{__name__}{inside}") if not found.ispkg)
    named = ((getattr(module, name, None), module) for module in found for name in EXPORTS)
    return {exported.name: module for exported, module in named if exported is not None}


def _sorted(found: Iterable[T]) -> list[T]:
    return sorted(found, key=lambda one: one.code)
