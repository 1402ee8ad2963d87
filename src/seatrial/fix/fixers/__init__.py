"""One module per kind of fix. Each exports `FIXER` and is found by its folder. Proposals are not proven here."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from seatrial.fix.proposal import Fixer


@cache
def fixers() -> dict[str, Fixer]:
    """The fixer of each rule that has one, by the rule's name."""
    found = (import_module(f"{__name__}.{module.name}").FIXER for module in iter_modules(__path__))
    return {rule: fixer for fixer in found for rule in fixer.rules}
