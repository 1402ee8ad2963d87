"""What must move when a library chart changes: versions, locks and READMEs of it and of all charts above it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from posixpath import join, normpath, relpath

from msgspec import Struct

from seatrial.sources import disk
from seatrial.sources.charts.chart import ChartSource
from seatrial.sources.charts.dependencies import CHART_FILE, dependencies_of, described
from seatrial.sources.charts.files import read_commit, read_folder
from seatrial.sources.charts.folder import charts_in
from seatrial.sources.files import read_text, shown

LOCKS = ("Chart.lock", "requirements.lock")
README = "README.md"
LINES_MAX = 3


class _Listed(Struct, frozen=True):
    """A chart of the folder: its version, and the versions of what it depends on."""

    path: str
    name: str
    version: str
    depends: dict[str, str]


def moves(library: ChartSource, old: ChartSource, folder: str) -> Iterator[str]:
    """A sentence for the library, one for each chart that uses it, and one for each umbrella of these.

    None if the library is as it was. With nothing to compare with, what a change would move.
    """
    if library is not old and library.files.files == old.files.files:
        return
    version, file = library.version, f"{library.path}/{CHART_FILE}"
    was = "" if library is old else f", was {old.version}"
    if library is not old and version == old.version:
        was = " must be raised: it is that of the old one"
    yield f"a change of {library.name} moves its version: {version} in {file}{was}{_readmes(library.path, version)}"
    charts = [_listed(path) for path in charts_in(Path(folder))]
    below = {library.name: f"{library.name} {library.version}"}
    left = [one for one in charts if one.name != library.name]
    while using := [one for one in left if any(name in below for name in one.depends)]:
        for one in using:
            on = next(name for name in one.depends if name in below)
            umbrella = "" if on == library.name else ", an umbrella,"
            same = library is not old and _version_before(one, library, old) == one.version
            yield f"{one.name}{umbrella} moves with {on}: {_own(one, on, old.path if same else '')}"
        left = [one for one in left if one not in using]
        below = {one.name: one.version for one in using}


def _own(one: _Listed, on: str, same: str) -> str:
    """What moves of a chart. `same` is the old revision, if the chart has the same version there."""
    asks = one.depends[on]
    raised = f" (must be raised: it is the same with {same})" if same else ""
    locks = [f", {one.path}/{lock}" for lock in LOCKS if disk.is_file(Path(one.path, lock))]
    return (
        f"version {one.version}{raised} and the dependency {on} {asks} in {one.path}/{CHART_FILE}{''.join(locks)}"
        f"{_readmes(one.path, one.version, on)}"
    )


def _version_before(one: _Listed, library: ChartSource, old: ChartSource) -> str:
    """The version that a chart had beside the old library; empty if it was not there."""
    folder = normpath(join(old.files.folder, relpath(one.path, library.files.folder)))
    if tree := old.files.tree:
        before = described(read_commit(tree, folder)) if not folder.startswith("..") else {}
    else:
        other = disk.resolved(Path(folder)) != disk.resolved(Path(one.path))
        before = described(read_folder(folder)) if other and disk.is_file(Path(folder, CHART_FILE)) else {}
    return str(before.get("version") or "") if before.get("name") == one.name else ""


def _listed(path: Path) -> _Listed:
    files = read_folder(str(path))
    about = described(files)
    depends = {str(entry.get("name")): str(entry.get("version") or "") for entry in dependencies_of(files)}
    return _Listed(shown(str(path)), str(about.get("name") or path.name), str(about.get("version") or ""), depends)


def _readmes(path: str, version: str, on: str = "") -> str:
    """The lines of a README that name the version of its chart, or a dependency in a table."""
    file = Path(path, README)
    if not version or not disk.is_file(file):
        return ""
    lines = read_text(str(file), "read the README").content.split("\n")
    found = [n for n, words in enumerate(lines, start=1) if version in words or (on and f"| {on} |" in words)]
    named = ", ".join(f"{shown(str(file))}:{number}" for number in found[:LINES_MAX])
    more = f" and {len(found) - LINES_MAX} more lines" if len(found) > LINES_MAX else ""
    return f", {named}{more}" if found else ""
