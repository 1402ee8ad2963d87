"""The charts that a chart depends on: which of them are there, in charts/ or beside it, and which are not.

Knows nothing of conditions and tags: Helm decides them when it renders.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from seatrial.model.errors import CannotContinue
from seatrial.model.resource import Body, Place, listed
from seatrial.sources.charts.files import ChartFiles, read_commit, read_folder, with_file
from seatrial.sources.charts.versions import satisfies
from seatrial.sources.files import as_text, shown
from seatrial.text.source import edited
from seatrial.text.yamlfile import Document, parse, without_items

CHART_FILE = "Chart.yaml"
OLD_FILE = "requirements.yaml"
"""Where charts of apiVersion v1 list their dependencies. Helm still reads it, and it outweighs Chart.yaml."""

_LOCAL = "file://"


class Gathered(Struct, frozen=True):
    """A chart with every dependency that could be found, and the names of those that could not."""

    chart: ChartFiles
    missing: tuple[str, ...] = ()


def gathered(chart: ChartFiles) -> Gathered:
    """Helm refuses to install a chart that lists a dependency it does not have, so those are taken off its list."""
    found = _with_neighbours(chart, (Path(chart.folder).resolve(),) if chart.folder else ())
    listing = dependency_list(found.chart)
    if listing is None:
        return found
    present = _names(found.chart)
    entries = enumerate(listed(listing.body, "dependencies"))
    absent = {index for index, entry in entries if isinstance(entry, dict) and entry.get("name") not in present}
    if not absent:
        return found
    text = edited(listing.text, without_items(listing, ("dependencies",), absent))
    path = text.path.removeprefix(chart.shown)
    return replace(found, chart=with_file(found.chart, (), path, text.content.encode()))


def described(chart: ChartFiles) -> Body:
    """Chart.yaml as a mapping."""
    body = _document(chart, CHART_FILE).body
    return body if isinstance(body, dict) else {}


def dependency_list(chart: ChartFiles) -> Document | None:
    """The file that lists a chart's dependencies, where one does."""
    for name in (OLD_FILE, CHART_FILE):
        if name in chart.files and listed((document := _document(chart, name)).body, "dependencies"):
            return document
    return None


def dependencies_of(chart: ChartFiles) -> list[Body]:
    listing = dependency_list(chart)
    return [entry for entry in listed(listing and listing.body, "dependencies") if isinstance(entry, dict)]


def _document(chart: ChartFiles, name: str) -> Document:
    return _parsed(chart.shown + name, chart.files.get(name, b""))


@lru_cache(maxsize=512)
def _parsed(path: str, content: bytes) -> Document:
    return parse(as_text(path, content, "read the chart"))


def _names(chart: ChartFiles) -> set[str]:
    """The names that the charts in charts/ give themselves."""
    return {str(described(subchart).get("name")) for subchart in chart.subcharts.values()}


def _with_neighbours(chart: ChartFiles, trail: tuple[Path, ...]) -> Gathered:
    """The chart with its `file://` dependencies in charts/, as `helm dependency build` puts them there, and theirs."""
    present = _names(chart)
    subcharts = dict(chart.subcharts)
    missing: list[str] = []
    for index, entry in enumerate(dependencies_of(chart)):
        if entry.get("name") in present:
            continue
        neighbour = _neighbour(chart, entry, index, trail)
        if neighbour is None:
            missing.append(_called(entry))
        else:
            subcharts[f"{entry['name']}-{index}"] = neighbour
            present.add(str(entry["name"]))
    for entry_name, inner in subcharts.items():
        found = _with_neighbours(inner, (*trail, Path(inner.folder).resolve()) if inner.folder else trail)
        missing += (f"{described(inner).get('name')}/{lacking}" for lacking in found.missing)
        subcharts[entry_name] = found.chart
    return Gathered(replace(chart, subcharts=subcharts), tuple(missing))


def _neighbour(chart: ChartFiles, entry: Body, index: int, trail: tuple[Path, ...]) -> ChartFiles | None:
    """The chart of that name in the folder that a dependency names."""
    repository = str(entry.get("repository") or "")
    if not chart.folder or not repository.startswith(_LOCAL):
        return None
    folder = shown(str(Path(chart.folder, repository.removeprefix(_LOCAL))))
    if chart.tree is None and not Path(folder, CHART_FILE).is_file():
        return None
    if Path(folder).resolve() in trail:
        raise CannotContinue(
            f"{_place(chart, index)}: the dependency {entry.get('name')} leads back to {folder}: a cycle"
        )
    found = _read(chart, folder)
    if found is None or described(found).get("name") != entry.get("name"):
        return None
    version, wanted = (str(said.get("version") or "") for said in (described(found), entry))
    if wanted and not satisfies(version, wanted):
        raise CannotContinue(
            f"{_place(chart, index)}: the dependency {entry.get('name')} is to have version {wanted}, and {folder} has "
            f"{version}: helm dependency build refuses that"
        )
    return found


def _read(beside: ChartFiles, folder: str) -> ChartFiles | None:
    """The chart in a folder, of the same time as the one beside it."""
    if beside.tree is None:
        return read_folder(folder)
    if folder.startswith(("..", "/")):
        return None
    found = read_commit(beside.tree, folder)
    return found if CHART_FILE in found.files else None


def _called(entry: Body) -> str:
    words = [str(entry.get("name")), str(entry.get("version") or ""), f"({entry.get('repository') or 'charts/'})"]
    return " ".join(word for word in words if word)


def _place(chart: ChartFiles, index: int) -> Place | str:
    listing = dependency_list(chart)
    return listing.place("dependencies", index) if listing else chart.shown
