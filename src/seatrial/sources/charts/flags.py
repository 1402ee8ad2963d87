"""The boolean values that a change between two revisions of a chart is about. Renders nothing.

A flag is a value that a condition of a changed template or named template reads, or one that decides whether a changed
named template or subchart is used. The nearest to the changed lines come first; the block of an `if` is near as a
whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from difflib import SequenceMatcher

from msgspec import Struct

from seatrial.model.resource import Body, dig
from seatrial.sources.charts.chart import TEMPLATES
from seatrial.sources.charts.dependencies import VALUES_FILE, dependencies_of, described
from seatrial.sources.charts.files import ChartFiles
from seatrial.sources.charts.gotemplate import Definition, definitions
from seatrial.sources.charts.value_reads import (
    ROOT,
    Meaning,
    Path,
    Read,
    RegionReads,
    region_reads,
)
from seatrial.sources.charts.values import escaped, merged, values_in
from seatrial.sources.files import as_text
from seatrial.text.source import Text

ENABLED = "enabled"
GLOBAL = "global"
OFF_WORDS = ("", "-", "false")
LINES_MAX = 5000
"""A longer file counts as changed from its first changed line to its last."""
VISITS_MAX = 4000
"""Named templates that are followed, each with each context it is called with."""
CALLER = 1
"""The distance of a condition around the call of a changed named template: next to those around the change."""

Lines = tuple[int, int]
"""The first and the last of some lines."""
Nearness = tuple[int, int, str, int]
"""How far the block of a condition is from the change, and the condition itself; then its place, for equal ones."""


class Flag(Struct, frozen=True):
    """A boolean value, and what it is toggled to."""

    path: Path
    becomes: bool
    is_new: bool = True
    """Whether the new revision reads it."""

    @property
    def setting(self) -> str:
        """`feature.hooks=true`, as for `--set`."""
        return f"{'.'.join(map(escaped, self.path))}={str(self.becomes).lower()}"


def flags_of_change(old: ChartFiles, new: ChartFiles, values: Body) -> list[Flag]:
    """The flags that the change from `old` to `new` is about, the nearest first; `values` are the user's."""
    before, after = _texts(old), _texts(new)
    changed = {name for name in {*before, *after} if _content(before, name) != _content(after, name)}
    found: dict[Path, Nearness] = {}
    known: dict[Path, object] = {}
    of_new: set[Path] = set()
    for chart, texts, others in ((new, after, before), (old, before, after)):
        change = _Change(texts, others, changed)
        for prefix, inner, own in _scopes(chart, (), values):
            reading = _Reading(change)
            for path, nearness in reading.flags(inner, own):
                whole = path if path[0] == GLOBAL else (*prefix, *path)
                found[whole] = min(nearness, found.get(whole, nearness))
                known.setdefault(whole, dig(own, *path))
                of_new |= {whole} if chart is new else set()
    for path in _switches(old, new):
        found.setdefault(path, (CALLER, 0, "", 0))
        known.setdefault(path, dig(merged(own_values(new), values), *path))
        of_new.add(path)
    ordered = sorted(found, key=lambda path: (found[path], path))
    return [Flag(path, _toggled(known[path]), path in of_new) for path in ordered if dig(values, *path) is None]


def _toggled(value: object) -> bool:
    return not value or (isinstance(value, str) and value.lower() in OFF_WORDS)


def own_values(chart: ChartFiles) -> Body:
    content = chart.files.get(VALUES_FILE, b"")
    return values_in(as_text(chart.shown + VALUES_FILE, content, "read the values of the chart"))


def _scopes(chart: ChartFiles, prefix: Path, given: Body) -> Iterator[tuple[Path, ChartFiles, Body]]:
    """Every chart that is rendered, the path of its values in those of the whole, and its own values."""
    own = merged(own_values(chart), given)
    if described(chart).get("type") != "library":
        yield prefix, chart, own
    for subchart in chart.subcharts.values():
        for key in _keys(chart, subchart):
            inner = own.get(key)
            yield from _scopes(subchart, (*prefix, key), inner if isinstance(inner, dict) else {})


def _keys(chart: ChartFiles, subchart: ChartFiles) -> list[str]:
    """The names under which a chart uses a subchart."""
    name = str(described(subchart).get("name"))
    listed = [entry for entry in dependencies_of(chart) if entry.get("name") == name]
    return list(dict.fromkeys(str(entry.get("alias") or name) for entry in listed)) or [name]


def _switches(old: ChartFiles, new: ChartFiles) -> Iterator[Path]:
    """The conditions in Chart.yaml of dependencies that the change is about."""
    listed = dependencies_of(old)
    for entry in dependencies_of(new):
        pairs = [[sub for sub in chart.subcharts.values() if _is(entry, sub)] for chart in (old, new)]
        contents = [[sub.files for sub in found] for found in pairs]
        if entry not in listed or contents[0] != contents[1]:
            for condition in filter(None, str(entry.get("condition") or "").split(",")):
                yield tuple(condition.strip().split("."))


def _is(entry: Body, subchart: ChartFiles) -> bool:
    return described(subchart).get("name") == entry.get("name")


def _texts(chart: ChartFiles, above: str = "") -> dict[str, Text]:
    """The templates of a chart and its subcharts, by a name that is the same in every revision."""
    name = f"{above}{described(chart).get('name')}/"
    found = {
        name + path: as_text(chart.shown + path, content, "read the template")
        for path, content in chart.files.items()
        if path.startswith(TEMPLATES)
    }
    for subchart in chart.subcharts.values():
        found |= _texts(subchart, name)
    return found


def _content(texts: Mapping[str, Text], name: str) -> str | None:
    return texts[name].content if name in texts else None


class _Change:
    """One side of a change: the templates of a revision, and the lines of them that the other one has not."""

    def __init__(self, texts: Mapping[str, Text], others: Mapping[str, Text], changed: Iterable[str]) -> None:
        self.texts = texts
        self.hunks = {
            name: _hunks(texts[name].content, _content(others, name) or "") for name in changed if name in texts
        }
        self.bodies: dict[str, tuple[str, Definition]] = {}
        for name, text in texts.items():
            self.bodies.update((body.name, (name, body)) for body in definitions(text.content))
        self.helpers = {name for name, (file, body) in self.bodies.items() if self._touches(file, body)}

    def _touches(self, file: str, body: Definition) -> bool:
        """Whether changed lines are inside of a named template."""
        text = self.texts[file]
        lines = text.line(body.start), text.line(body.end)
        return any(_gap(lines, hunk) == 0 for hunk in self.hunks.get(file, ()))

    def nearness(self, file: str, lines: Lines) -> Nearness | None:
        """How near a block is to the changed lines of its file; None if none are there."""
        hunks = self.hunks.get(file, ())
        if not hunks:
            return None
        first = lines[0]
        gap = min((_gap(lines, hunk), _gap((first, first), hunk)) for hunk in hunks)
        return (*gap, file, first)


class _Reading:
    """Follows the templates of one chart, with its values, through all named templates that they call."""

    def __init__(self, change: _Change) -> None:
        self._change = change
        self._seen: dict[tuple[str, Meaning], RegionReads] = {}
        self._printed: set[Path] = set()
        self._asked: dict[tuple[Path, bool], Nearness] = {}

    def flags(self, chart: ChartFiles, values: Body) -> Iterator[tuple[Path, Nearness]]:
        """The flags near the change that this chart reads, by their path in its own values."""
        own = {chart.shown + path for path in chart.files if path.startswith(TEMPLATES)}
        for file, text in self._change.texts.items():
            if text.path in own:
                self._read(file, "", 0, len(text.content), ROOT)
        read = self._printed | {path for path, _ in self._asked}
        longer = {path[:length] for path in read for length in range(1, len(path))}
        for (path, only_truth), nearness in self._asked.items():
            if _is_flag(dig(values, *path), path, only_truth=only_truth and path not in self._printed | longer):
                yield path, nearness

    def _read(self, file: str, helper: str, start: int, end: int, context: Meaning) -> RegionReads:
        """One template, and those that it calls; notes the conditions that are near the change."""
        key = helper or file, context
        if key in self._seen or len(self._seen) > VISITS_MAX:
            return self._seen.get(key, RegionReads((), (), frozenset()))
        self._seen[key] = RegionReads((), (), frozenset())
        text = self._change.texts[file]
        found = region_reads(text.content, start, end, context, self._named)
        self._seen[key] = found
        self._printed |= found.printed
        affected = []
        for call in found.calls:
            if call.name in self._change.bodies:
                inner, body = self._change.bodies[call.name]
                self._read(inner, call.name, body.start, body.end, call.context)
                if self._uses_change(call.name, call.context):
                    affected.append(call.start)
        is_changed = helper in self._change.helpers if helper else file in self._change.hunks
        for condition in found.conditions:
            lines = text.line(condition.start), text.line(condition.end)
            nearness = self._change.nearness(file, lines) if is_changed else None
            if any(condition.start <= start <= condition.end for start in affected):
                nearness = min(nearness or (CALLER, 0, file, lines[0]), (CALLER, 0, file, lines[0]))
            if nearness is not None:
                self._ask(condition.reads, nearness)
        return found

    def _ask(self, reads: Iterable[Read], nearness: Nearness) -> None:
        for read in reads:
            key = read.path, read.only_truth
            self._asked[key] = min(nearness, self._asked.get(key, nearness))

    def _uses_change(self, helper: str, context: Meaning) -> bool:
        """Whether a named template was changed, or calls one that was."""
        waiting, seen = [(helper, context)], {helper}
        while waiting:
            name, at = waiting.pop()
            if name in self._change.helpers:
                return True
            calls = self._seen[name, at].calls if (name, at) in self._seen else ()
            waiting += [(call.name, call.context) for call in calls if call.name not in seen]
            seen.update(call.name for call in calls)
        return False

    def _named(self, helper: str, context: Meaning) -> tuple[Read, ...]:
        """The values that a named template reads: as a condition, it asks for them."""
        if helper not in self._change.bodies:
            return ()
        file, body = self._change.bodies[helper]
        found = self._read(file, helper, body.start, body.end, context)
        return tuple(dict.fromkeys(read for condition in found.conditions for read in condition.reads))


def _is_flag(value: object, path: Path, *, only_truth: bool) -> bool:
    """Whether a value is a boolean: by its type, by the name `enabled`, or where it has none by its use."""
    if isinstance(value, bool):
        return True
    if path[-1] == ENABLED:
        return value is None or isinstance(value, str)
    return value is None and only_truth


def _hunks(content: str, other: str) -> list[Lines]:
    """The lines of a text that another one does not have, and where it lacks lines of the other one."""
    ours, theirs = content.splitlines(), other.splitlines()
    first = 0
    while first < min(len(ours), len(theirs)) and ours[first] == theirs[first]:
        first += 1
    last = 0
    while last < min(len(ours), len(theirs)) - first and ours[-1 - last] == theirs[-1 - last]:
        last += 1
    ours, theirs = ours[first : len(ours) - last], theirs[first : len(theirs) - last]
    if max(len(ours), len(theirs)) > LINES_MAX:
        return [(first + 1, first + max(len(ours), 1))]
    matcher = SequenceMatcher(None, ours, theirs, autojunk=False)
    return [(first + a + 1, first + max(b, a + 1)) for word, a, b, *_ in matcher.get_opcodes() if word != "equal"]


def _gap(lines: Lines, hunk: Lines) -> int:
    """How many lines are between; 0 where they meet."""
    return max(hunk[0] - lines[1], lines[0] - hunk[1], 0)
