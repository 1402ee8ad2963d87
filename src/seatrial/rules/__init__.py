"""One module, one hazard: its page (the docstring), its check, its fix. Rules read timelines, cases and graphs."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from inspect import getdoc
from pkgutil import walk_packages
from types import ModuleType

from seatrial.model.finding import Rule


@cache
def all_rules() -> tuple[Rule, ...]:
    """Every rule of this folder, by code."""
    return tuple(sorted((module.RULE for module in _modules().values()), key=lambda rule: rule.code))


def page(rule: Rule) -> str:
    """What the rule's module says of itself."""
    return getdoc(_modules()[rule.name]) or ""


@cache
def _modules() -> dict[str, ModuleType]:
    """The module of each rule, by the name of the rule."""
    found = (import_module(found.name) for found in walk_packages(__path__, f"{__name__}.") if not found.ispkg)
    return {module.RULE.name: module for module in found if hasattr(module, "RULE")}
