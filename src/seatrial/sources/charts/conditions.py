"""Conditions in templates on install or upgrade, on the state of the cluster, or on random values.

Reads text only; the effect of a condition is found by rendering.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from seatrial.model import lazy_re
from seatrial.model.resource import Place
from seatrial.sources.charts.chart import TEMPLATES, template_texts
from seatrial.sources.charts.files import ChartFiles
from seatrial.sources.charts.gotemplate import TemplateAction, actions, definitions
from seatrial.text.source import Text

_ASKS = lazy_re.compile(
    r"\.Release\.(?:IsInstall|IsUpgrade|Revision)\b|\.Capabilities\.APIVersions\b|\blookup\b"
    r"|\b(?:rand[A-Z]\w*|gen(?:PrivateKey|CA\w*|SignedCert\w*|SelfSignedCert\w*)|uuidv4|now|shuffle|htpasswd|bcrypt)\b"
)
_ACT = lazy_re.compile(r"\.Release\.(?:IsInstall|IsUpgrade)\b")
_CHANCE = lazy_re.compile(r"\b(?:rand[A-Z]\w*|genPrivateKey|uuidv4|shuffle)\b")
_KINDS = lazy_re.compile(r"\.Capabilities\.APIVersions\b")
_ACTION = lazy_re.compile(r"\{\{.*?\}\}", re.S)
_LOOKUP = lazy_re.compile(r"\blookup\b")
_NAMESPACE_LOOKUP = lazy_re.compile(r'\blookup\s+"v1"\s+"Namespace"')
_CALL = lazy_re.compile(r"""(?:include|template)\s+["`]([^"`]+)["`]""")
_DECIDES = lazy_re.compile(r"(?:else\s+)?(?:if|with|range)\b")


class Condition(Struct, frozen=True):
    """One condition and its place."""

    asks: str
    """`.Release.IsInstall`"""
    place: Place


def has_conditions(chart: ChartFiles) -> bool:
    """Whether any template may render differently the next time or on another cluster."""
    return any(_ASKS.search(text.content) or ".Capabilities" in text.content for text in template_texts(chart))


def looks_up(chart: ChartFiles) -> bool:
    """Whether any template uses `lookup`."""
    return any(_LOOKUP.search(text.content) for text in template_texts(chart))


def looks_up_namespaces(chart: ChartFiles) -> bool:
    """Whether any template uses `lookup` on Namespaces."""
    return any(_NAMESPACE_LOOKUP.search(text.content) for text in template_texts(chart))


def with_answered_lookups(chart: ChartFiles) -> ChartFiles:
    """The chart with templates in which every `lookup` finds an object, of which nothing is known.

    `dict` takes the four arguments of `lookup` as two pairs: the result is not empty and has no known field.
    """
    files = {
        path: _answered(content) if path.startswith(TEMPLATES) else content for path, content in chart.files.items()
    }
    subcharts = {name: with_answered_lookups(one) for name, one in chart.subcharts.items()}
    return replace(chart, files=files, subcharts=subcharts)


def _answered(template: bytes) -> bytes:
    """Every column stays where it is."""
    text = template.decode(errors="surrogateescape")
    return _ACTION.sub(lambda action: _LOOKUP.sub("dict  ", action[0]), text).encode(errors="surrogateescape")


def asks_for_kinds(chart: ChartFiles) -> bool:
    """Whether any template asks which kinds the cluster serves."""
    return any(_KINDS.search(text.content) for text in template_texts(chart))


def asks_for_the_act(chart: ChartFiles) -> bool:
    """Whether any template asks whether it is installed or upgraded."""
    return any(_ACT.search(text.content) for text in template_texts(chart))


def generates_values(chart: ChartFiles, *, looks: bool) -> bool:
    """Whether a template generates random values; with `looks`, one that uses `lookup` may keep the previous value."""
    texts = [text.content for text in template_texts(chart)]
    kept = looks and any(_LOOKUP.search(text) for text in texts)
    return not kept and any(_CHANCE.search(text) for text in texts)


def condition_of(chart: ChartFiles, file: str) -> Condition | None:
    """The condition of a template or of a template it calls; one in an `if`, `with` or `range` comes first."""
    texts = {text.path: text for text in template_texts(chart)}
    named = {d.name: (text, d.start, d.end) for text in texts.values() for d in definitions(text.content)}
    start = texts.get(file)
    if start is None:
        return None
    found: list[tuple[bool, Condition]] = []
    waiting: list[tuple[Text, int, int]] = [(start, 0, len(start.content))]
    seen: set[str] = set()
    while waiting:
        text, begin, end = waiting.pop(0)
        for action in actions(text.content, begin, end):
            found += _asked(text, action)
            called = [name for name in _CALL.findall(action.says) if name in named and name not in seen]
            seen.update(called)
            waiting += [named[name] for name in called]
    return min(found, key=lambda entry: entry[0], default=(True, None))[1]


def _asked(text: Text, action: TemplateAction) -> Iterator[tuple[bool, Condition]]:
    if asks := _ASKS.search(action.says):
        yield not _DECIDES.match(action.says), Condition(asks[0], Place(text.path, text.line(action.start)))
