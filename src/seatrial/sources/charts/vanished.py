"""Templates that render empty because a value with several possible keys is set under none. Renders nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from seatrial.model.release import Vanished
from seatrial.model.resource import Place
from seatrial.sources.charts.chart import ChartSource, find_file

PLACES_MIN = 2
"""A value with a single key may be an intended switch."""

_COMMENT = re.compile(r"\{\{-?\s*/\*.*?\*/\s*-?\}\}", re.S)
_ASSIGNED = re.compile(r"\{\{-?\s*\$(\w+)\s*:=\s*(.*?)\s*-?\}\}", re.S)
_ASKED = re.compile(r"\s*\{\{-?\s*(?:if|with)\s+(.*?)\s*-?\}\}", re.S)
_VALUE = re.compile(r"\.Values((?:\.\w+)+)")
_KIND = re.compile(r"^kind:\s*([A-Za-z]+)\s*$", re.M)


def vanished(chart: ChartSource, texts: Mapping[str, str]) -> Iterator[Vanished]:
    """Templates that render empty because of an `if` or `with` on such a value; `texts` are all rendered files."""
    for name in sorted(texts):
        file = find_file(chart.files, name) if not texts[name].strip() else None
        if file is None:
            continue
        written = file.text.content
        body = _COMMENT.sub("", written)
        chains: dict[str, str] = {f"${variable}": chain for variable, chain in _ASSIGNED.findall(body)}
        asked = _ASKED.match(_ASSIGNED.sub("", body))
        question = asked[1] if asked else ""
        places = _places(chains.get(question, question))
        kinds = tuple(dict.fromkeys(_KIND.findall(written)))
        if asked and len(places) >= PLACES_MIN and kinds:
            line = written[: written.index(asked[0].strip())].count("\n") + 1
            yield Vanished(Place(file.text.path, line), kinds, places)


def _places(chain: str) -> tuple[str, ...]:
    """The keys that are tried one after the other; none if they are not alternatives."""
    if "default" not in chain.split() and "coalesce" not in chain.split():
        return ()
    return tuple(dict.fromkeys(path[1:] for path in _VALUE.findall(re.sub(r"[()]", "", chain))))
