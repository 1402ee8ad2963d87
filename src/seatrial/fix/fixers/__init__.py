"""One module per kind of fix. Each exports `FIXER` and is found by its folder. Proposals are not proven here."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from seatrial.fix.proposal import Fixer


@cache
def fixers() -> dict[str, list[Fixer]]:
    """The fixers of each rule that has any, by the rule's name."""
    found: dict[str, list[Fixer]] = {}
    for module in iter_modules(__path__):
        fixer = import_module(f"{__name__}.{module.name}").FIXER
        for rule in fixer.rules:
            found.setdefault(rule, []).append(fixer)
    return found
