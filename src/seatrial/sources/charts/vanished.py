"""Templates that render empty because a value with several possible keys is set under none. Renders nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from msgspec import Struct

from seatrial.model import lazy_re
from seatrial.model.release import Vanished
from seatrial.model.resource import Body, Place
from seatrial.sources.charts.chart import ChartSource, find_file, own_values
from seatrial.sources.charts.gotemplate import actions
from seatrial.sources.charts.truth import Known, alternatives, is_switch, truth
from seatrial.sources.charts.values import merged

PLACES_MIN = 2
"""A value with a single key may be an intended switch."""

_ASSIGNED = lazy_re.compile(r"(\$\w+)\s*:=\s*(.*)", re.S)
_ASKED = lazy_re.compile(r"(?:if|with)\s+(.*)", re.S)
_OPENS = lazy_re.compile(r"(?:range|define|block)\b")
_ELSE = lazy_re.compile(r"else\b")
_ENDS = lazy_re.compile(r"end\b")
_KIND = lazy_re.compile(r"^kind:\s*([A-Za-z]+)\s*$", re.M)
UNKNOWN = ""
"""The condition of a block that is not evaluated: a loop, a named template, an `else`."""


class ConditionText(Struct, frozen=True):
    """The condition of an `if` or `with`, and its offset."""

    says: str
    start: int


def vanished(chart: ChartSource, texts: Mapping[str, str], values: Body) -> Iterator[Vanished]:
    """Templates that render empty because of an `if` or `with` on such a value; `texts` are all rendered files."""
    own = merged(own_values(chart), values)
    for name in sorted(texts):
        file = find_file(chart.files, name) if not texts[name].strip() else None
        if file is None:
            continue
        written = file.text.content
        known = Known(own if name.count("/charts/") == 0 else None, dict(_assigned(written)))
        found: dict[ConditionText, list[str]] = {}
        for kind, around in _kinds(written):
            if (asked := _decisive(around, known)) is not None:
                found.setdefault(asked, []).append(kind)
        for asked, kinds in found.items():
            places = alternatives(asked.says, known)
            if len(places) >= PLACES_MIN and not is_switch(asked.says, known):
                place = Place(file.text.path, file.text.line(asked.start))
                yield Vanished(place, tuple(dict.fromkeys(kinds)), places)


def _assigned(written: str) -> Iterator[tuple[str, str]]:
    for action in actions(written):
        if assigned := _ASSIGNED.match(action.says):
            yield assigned[1], assigned[2]


def _kinds(written: str) -> Iterator[tuple[str, tuple[ConditionText, ...]]]:
    """The objects that a template writes, each with the conditions around it, the outermost first."""
    waiting = [*actions(written)]
    around: list[ConditionText] = []
    for kind in _KIND.finditer(written):
        while waiting and waiting[0].start < kind.start():
            action = waiting.pop(0)
            if asked := _ASKED.match(action.says):
                around.append(ConditionText(asked[1], action.start))
            elif _OPENS.match(action.says):
                around.append(ConditionText(UNKNOWN, action.start))
            elif _ELSE.match(action.says) and around:
                around[-1] = ConditionText(UNKNOWN, action.start)
            elif _ENDS.match(action.says) and around:
                around.pop()
        yield kind[1], tuple(around)


def _decisive(around: tuple[ConditionText, ...], known: Known) -> ConditionText | None:
    """The condition that hides an object: the outermost that is false, unless one before it may be false too."""
    for asked in around:
        decided = truth(asked.says, known)
        if decided is False or (decided is None and around == (asked,)):
            return asked
        if decided is None:
            return None
    return None
