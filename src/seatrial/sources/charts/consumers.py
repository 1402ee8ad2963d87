"""The charts of a folder that depend on a library chart, and which of its templates they call. Renders nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from msgspec.structs import replace

from seatrial.model import lazy_re
from seatrial.model.errors import CannotContinue
from seatrial.sources import disk
from seatrial.sources.charts.chart import ChartSource, opened, template_texts
from seatrial.sources.charts.dependencies import dependencies_of, described
from seatrial.sources.charts.files import ChartFiles, read_folder
from seatrial.sources.charts.folder import charts_in
from seatrial.sources.charts.gotemplate import actions, definitions
from seatrial.sources.files import shown

_CALL = lazy_re.compile(r"""(?:include|template)\s+["`]([^"`]+)["`]""")


def consumers_of(library: ChartSource, folder: str) -> Iterator[str]:
    """The charts in a folder whose Chart.yaml lists the library as a dependency."""
    root = Path(folder)
    if not disk.is_dir(root):
        raise CannotContinue(f"--consumers {folder}: no such folder")
    for path in charts_in(root):
        listed = (entry.get("name") for entry in dependencies_of(read_folder(str(path))))
        if library.name in listed:
            yield shown(str(path))


def with_library(path: str, library: ChartSource, called: str = "") -> ChartSource:
    """A consumer with this library in its charts/ instead of its own copy."""
    files = read_folder(path)
    others = {e: chart for e, chart in files.subcharts.items() if described(chart).get("name") != library.name}
    return opened(called or path, replace(files, subcharts={**others, library.name: library.files}))


def helpers_called(consumer: str, library: ChartSource) -> set[str]:
    """The named templates of the library that a chart calls, directly or through other named templates."""
    bodies = helpers_of(library.files)
    waiting = [
        name for text in template_texts(replace(read_folder(consumer), subcharts={})) for name in _calls(text.content)
    ]
    found: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in bodies and name not in found:
            found.add(name)
            waiting += _calls(bodies[name])
    return found


def helpers_changed(old: ChartSource, new: ChartSource) -> set[str]:
    """The named templates that were changed, added or removed."""
    before, after = helpers_of(old.files), helpers_of(new.files)
    return {name for name in {*before, *after} if before.get(name) != after.get(name)}


def helpers_of(library: ChartFiles) -> dict[str, str]:
    """The text of each named template, by its name."""
    return {
        found.name: text.content[found.start : found.end]
        for text in template_texts(library)
        for found in definitions(text.content)
    }


def _calls(content: str) -> list[str]:
    return [name for action in actions(content) for name in _CALL.findall(action.says)]
