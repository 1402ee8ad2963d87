"""The dependencies of a chart: which are present, in charts/ or in a `file://` folder, and which are missing.

Conditions and tags of those that are present are not looked at: Helm evaluates them when it renders.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from seatrial.model.errors import CannotContinue
from seatrial.model.resource import Body, Place, listed
from seatrial.sources import disk
from seatrial.sources.charts.files import ChartFiles, read_commit, read_folder, with_file
from seatrial.sources.charts.lacking import LackingChart, Switch, exact
from seatrial.sources.charts.values import values_in
from seatrial.sources.charts.versions import satisfies
from seatrial.sources.files import as_text, shown, within
from seatrial.text.source import edited
from seatrial.text.yamlfile import Document, parse, without_items

CHART_FILE = "Chart.yaml"
OLD_FILE = "requirements.yaml"
"""The dependency list of charts with apiVersion v1. Helm still reads it and prefers it over Chart.yaml."""

LOCK_FILES = ("requirements.lock", "Chart.lock")
VALUES_FILE = "values.yaml"
_LOCAL = "file://"


class CompleteChart(Struct, frozen=True):
    """A chart with the dependencies that were found, and the missing ones."""

    chart: ChartFiles
    missing: tuple[LackingChart, ...] = ()


def gathered(chart: ChartFiles) -> CompleteChart:
    """The chart with missing dependencies removed from its list: Helm refuses to install a chart that lacks one."""
    found = _with_neighbours(chart, (disk.resolved(Path(chart.folder)),) if chart.folder else ())
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
    body = document_of(chart, CHART_FILE).body
    return body if isinstance(body, dict) else {}


def dependency_list(chart: ChartFiles) -> Document | None:
    """The file that lists a chart's dependencies, if any."""
    for name in (OLD_FILE, CHART_FILE):
        if name in chart.files and listed((document := document_of(chart, name)).body, "dependencies"):
            return document
    return None


def dependencies_of(chart: ChartFiles) -> list[Body]:
    """Each entry has a name, which Helm requires."""
    listing = dependency_list(chart)
    entries = listed(listing and listing.body, "dependencies")
    for index, entry in enumerate(entries):
        if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
            raise CannotContinue(f"{chart.shown}Chart.yaml: dependencies[{index}].name is not a string")
    return entries


def local_dependencies(folder: str) -> list[str]:
    """The folders of `file://` dependencies, and of theirs, each once. Says nothing of those that are not there."""
    found: dict[str, None] = {}
    waiting = [folder]
    while waiting:
        here = waiting.pop()
        for entry in dependencies_of(read_folder(here)):
            repository = str(entry.get("repository") or "")
            beside = shown(str(Path(here, repository.removeprefix(_LOCAL))))
            if repository.startswith(_LOCAL) and disk.is_file(Path(beside, CHART_FILE)) and beside not in found:
                found[beside] = None
                waiting.append(beside)
    return list(found)


def document_of(chart: ChartFiles, name: str) -> Document:
    """A file of a chart, parsed."""
    return _parsed(chart.shown + name, chart.files.get(name, b""))


@lru_cache(maxsize=512)
def _parsed(path: str, content: bytes) -> Document:
    return parse(as_text(path, content, "read the chart"))


def _names(chart: ChartFiles) -> set[str]:
    """The names of the charts in charts/, from their Chart.yaml."""
    return {str(described(subchart).get("name")) for subchart in chart.subcharts.values()}


def _with_neighbours(chart: ChartFiles, trail: tuple[Path, ...]) -> CompleteChart:
    """The chart with its `file://` dependencies in charts/, recursively, as after `helm dependency build`."""
    present = _names(chart)
    subcharts = dict(chart.subcharts)
    missing: list[LackingChart] = []
    for index, entry in enumerate(dependencies_of(chart)):
        if entry.get("name") in present:
            continue
        neighbour = _neighbour(chart, entry, index, trail)
        if neighbour is None:
            missing.append(_lacking(chart, entry))
        else:
            subcharts[f"{entry['name']}-{index}"] = neighbour
            present.add(str(entry["name"]))
    for entry_name, inner in subcharts.items():
        found = _with_neighbours(inner, (*trail, disk.resolved(Path(inner.folder))) if inner.folder else trail)
        missing += (_inside(chart, inner, lacking) for lacking in found.missing)
        subcharts[entry_name] = found.chart
    return CompleteChart(replace(chart, subcharts=subcharts), tuple(missing))


def _neighbour(chart: ChartFiles, entry: Body, index: int, trail: tuple[Path, ...]) -> ChartFiles | None:
    """The chart in the folder of a `file://` dependency."""
    repository = str(entry.get("repository") or "")
    if not chart.folder or not repository.startswith(_LOCAL):
        return None
    folder = shown(str(Path(chart.folder, repository.removeprefix(_LOCAL))))
    if chart.tree is None and not disk.is_file(Path(folder, CHART_FILE)):
        return None
    if chart.tree is None:
        named, remedy = f"{_place(chart, index)}: the dependency {entry.get('name')}", "copy it into charts/"
        within(Path(folder), *chart.roots, named=named, remedy=remedy)
    if disk.resolved(Path(folder)) in trail:
        raise CannotContinue(
            f"{_place(chart, index)}: the dependency {entry.get('name')} is a cycle: it leads back to {folder}"
        )
    found = _read(chart, folder)
    if found is None or described(found).get("name") != entry.get("name"):
        return None
    version, wanted = (str(said.get("version") or "") for said in (described(found), entry))
    if wanted and not satisfies(version, wanted):
        raise CannotContinue(
            f"{_place(chart, index)}: the dependency {entry.get('name')} needs version {wanted}, but {folder} has "
            f"{version}; helm dependency build would refuse it"
        )
    return found


def _read(beside: ChartFiles, folder: str) -> ChartFiles | None:
    """The chart in a folder, at the same commit as `beside`."""
    if beside.tree is None:
        return read_folder(folder, beside.roots)
    if folder.startswith(("..", "/")):
        return None
    found = read_commit(beside.tree, folder)
    return found if CHART_FILE in found.files else None


def _lacking(chart: ChartFiles, entry: Body) -> LackingChart:
    name, wanted = str(entry.get("name")), str(entry.get("version") or "")
    repository = str(entry.get("repository") or "")
    called = " ".join(word for word in (name, wanted, f"({repository or 'charts/'})") if word)
    version = _locked(chart).get(name) or exact(wanted)
    return LackingChart(called, name, version, _switch(entry), repository=repository)


def _inside(chart: ChartFiles, inner: ChartFiles, lacking: LackingChart) -> LackingChart:
    """A dependency that a subchart lacks."""
    name = str(described(inner).get("name"))
    entry = next((entry for entry in dependencies_of(chart) if entry.get("name") == name), {"name": name})
    own = values_in(as_text(inner.shown + VALUES_FILE, inner.files.get(VALUES_FILE, b""), "read the values"))
    parents = ((_switch(entry), own), *lacking.parents)
    return replace(lacking, called=f"{name}/{lacking.called}", parents=parents)


def _switch(entry: Body) -> Switch:
    key = str(entry.get("alias") or entry.get("name"))
    return Switch(key, str(entry.get("condition") or ""), tuple(map(str, entry.get("tags") or ())))


def _locked(chart: ChartFiles) -> dict[str, str]:
    """The versions in the lock file, by the names of the charts."""
    listing = next((document_of(chart, name).body for name in LOCK_FILES if name in chart.files), None)
    entries = [entry for entry in listed(listing, "dependencies") if isinstance(entry, dict)]
    return {str(entry.get("name")): str(entry.get("version") or "") for entry in entries}


def _place(chart: ChartFiles, index: int) -> Place | str:
    listing = dependency_list(chart)
    return listing.place("dependencies", index) if listing else chart.shown
