"""How people name rules: by name, by code, or by the beginning of a code."""

from __future__ import annotations

import re
from difflib import get_close_matches

from seatrial.model import lazy_re
from seatrial.model.finding import Finding
from seatrial.rules import all_explained

_CODE = lazy_re.compile(r"ST\d{0,3}", re.IGNORECASE)


def names(given: str, finding: Finding) -> bool:
    """Whether `given` names the rule of a finding: `object-lost`, `ST002`, `ST0`."""
    return is_name(given, finding.rule, finding.code)


def is_name(given: str, rule: str, code: str) -> bool:
    return given.lower() == rule or (bool(_CODE.fullmatch(given)) and code.startswith(given.upper()))


def is_known(given: str) -> bool:
    return any(is_name(given, rule.name, rule.code) for rule in all_explained())


def most_like(given: str) -> str:
    """The rule whose name or code is most like an unknown one; empty if none is."""
    known = {spelled.lower(): spelled for rule in all_explained() for spelled in (rule.name, rule.code)}
    close = get_close_matches(given.lower(), known, n=1)
    return known[close[0]] if close else ""


def refusal(given: str) -> str:
    """Why `given` is refused where it must be known."""
    meant = most_like(given)
    hint = f"did you mean {meant}?" if meant else "seatrial explain lists all rules"
    return f"{given!r} is not a rule; {hint}"
