"""Library charts: what is tried unasked with every chart that uses one. Rehearses nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from seatrial.model import lazy_re
from seatrial.model.errors import CannotContinue
from seatrial.sources.charts.chart import ChartSource, template_texts
from seatrial.sources.charts.consumers import helpers_of, with_library
from seatrial.sources.charts.gotemplate import actions
from seatrial.sources.opened import Opened

VALUES_MAX = 10
"""How many values are left out, one at a time."""
_NESTED = lazy_re.compile(r"(?<![\w)])\.Values\.(?P<parent>\w+)\.\w+")
NIL = "nil pointer"


def removed_helpers(library: ChartSource, old: ChartSource) -> Iterator[str]:
    """Named templates that charts elsewhere may still call."""
    gone = sorted(set(helpers_of(old.files)) - set(helpers_of(library.files)))
    for name in gone:
        yield (
            f'{library.name} no longer defines "{name}": a chart elsewhere that includes it does not render; keep it, '
            "with an include of the new one"
        )


def without_values(library: ChartSource, using: Sequence[str]) -> Iterator[str]:
    """Values whose maps a new user of the library may not have: each is left out, with the first chart that fails."""
    for value, place in list(_nested(library))[:VALUES_MAX]:
        for chart in using:
            if words := _error(chart, library, value):
                yield (
                    f"{chart} does not render without the value {value}: {words}; write (.Values.{value}) at {place}, "
                    "with the parentheses"
                )
                break


def _nested(library: ChartSource) -> Iterator[tuple[str, str]]:
    """The maps of values that the library reads below, and where it does so first."""
    seen: set[str] = set()
    for text in template_texts(library.files):
        for action in actions(text.content):
            for found in _NESTED.finditer(action.says):
                if found["parent"] not in seen and found["parent"] != "global":
                    seen.add(found["parent"])
                    yield found["parent"], f"{text.path}:{text.line(action.start)}"


def _error(path: str, library: ChartSource, value: str) -> str:
    """The error if a chart does not render without a value; empty if it does."""
    opened = Opened("", path)
    chart = with_library(path, library)
    try:
        opened.render(chart, {}, release=chart.release, namespace="default")
    except CannotContinue:
        return ""  # It needs values of the user, so nothing is known.
    try:
        opened.render(chart, {value: None}, release=chart.release, namespace="default")
    except CannotContinue as why:
        return _short(str(why)) if NIL in str(why) else ""
    return ""


def _short(words: str) -> str:
    return words[words.index(NIL) :].split(";")[0]
