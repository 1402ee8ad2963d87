"""One module, one hazard: its page (the docstring), its check, its fix. Rules read timelines, cases and graphs."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from inspect import getdoc
from pkgutil import iter_modules

from seatrial.findings import Rule


@cache
def all_rules() -> tuple[Rule, ...]:
    """Every rule of this folder, by code."""
    modules = (import_module(f"{__name__}.{found.name}") for found in iter_modules(__path__))
    return tuple(sorted((module.RULE for module in modules if hasattr(module, "RULE")), key=lambda rule: rule.code))


def page(rule: Rule) -> str:
    """What the rule's module says of itself."""
    module = import_module(f"{__name__}.{rule.name.replace('-', '_')}")
    return getdoc(module) or ""
