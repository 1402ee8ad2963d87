"""A value that may be set in several places is required: the template fails instead of rendering nothing.

Each map that may be missing gets parentheses, so that the error is about the value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from seatrial.fix.proposal import ByHand, Edits, Fixer, Problem, Proposal, TextEdit
from seatrial.model import lazy_re
from seatrial.model.release import Vanished
from seatrial.sources import text_of
from seatrial.sources.charts.gotemplate import TemplateAction, actions
from seatrial.text.source import Edit, Span

UNSAFE = "without one of these values the chart no longer renders"
_VARIABLE = lazy_re.compile(r"(?:if|with)\s+(?P<name>\$\w+)\s*")
_NO_DEFAULT = lazy_re.compile(r"""\s*\|\s*default\s+(?:""|''|``)\s*$""")
_NESTED = lazy_re.compile(r"(?<![\w)])\.Values(?:\.(?P<parents>\w+(?:\.\w+)*))\.(?P<last>\w+)")


def propose(problem: Problem) -> Iterator[Proposal]:
    for one in _vanished(problem):
        values = " or ".join(one.values)
        yield Proposal(f"require {values}", _required(one), UNSAFE, values=(f"{one.values[0]}=example",))


def _vanished(problem: Problem) -> list[Vanished]:
    first = next(iter(problem.finding.places), None)
    every = [one for release in problem.releases() for one in release.vanished if one.place == first]
    return every[:1]


def _required(one: Vanished) -> Edits | ByHand:
    text = text_of(one.place.file)
    if text is None:
        return ByHand(f"{one.place.file} cannot be read again")
    found = list(actions(text.content))
    asked = next((action for action in found if text.line(action.start) == one.place.line), None)
    variable = _VARIABLE.fullmatch(asked.says) if asked else None
    chain = _assignment(found, variable["name"]) if variable else None
    if chain is None:
        return ByHand(f"{one.place} does not ask for a variable with the value")
    start = text.content.index(chain.says, chain.start)
    says = _NO_DEFAULT.sub("", chain.says)
    words = _NESTED.sub(_nil_safe, says) + f' | required "set {" or ".join(one.values)}"'
    return (TextEdit(text, Edit(Span(start, start + len(chain.says)), words)),)


def _assignment(found: list[TemplateAction], name: str) -> TemplateAction | None:
    own = [action for action in found if re.match(rf"{re.escape(name)}\s*:?=", action.says)]
    return own[0] if len(own) == 1 else None


def _nil_safe(found: re.Match[str]) -> str:
    words = ".Values"
    for parent in found["parents"].split("."):
        words = f"({words}.{parent})"
    return f"{words}.{found['last']}"


FIXER = Fixer(("object-vanishes-without-a-value",), propose)
