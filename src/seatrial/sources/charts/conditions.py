"""Conditions in templates on install or upgrade, on the state of the cluster, or on random values.

Reads text only; the effect of a condition is found by rendering.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from seatrial.model import lazy_re
from seatrial.model.resource import Place
from seatrial.sources.charts.chart import template_texts
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
_LOOKUP = lazy_re.compile(r"\blookup\b")
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
