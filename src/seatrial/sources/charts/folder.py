"""Charts in a folder, and which of them changed since a commit. Renders nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from seatrial.model import lazy_re
from seatrial.sources import disk, git
from seatrial.sources.charts.dependencies import CHART_FILE, dependencies_of, described
from seatrial.sources.charts.files import read_folder

DEPTH_MAX = 4
"""How deep below the folder charts are searched. A chart in charts/ of another chart is part of that one."""
HEAD_BYTES = 64 * 1024
"""How much of a file is read to see whether it is a Kubernetes object."""

_OBJECT = lazy_re.compile(rb"(?m)^(apiVersion|kind):")


def charts_in(folder: Path) -> list[Path]:
    """All charts below a folder, by path."""
    return sorted(_charts(folder, DEPTH_MAX))


def is_folder_of_charts(path: str) -> bool:
    """Whether a folder contains charts, and no Kubernetes objects beside them."""
    folder = Path(path)
    if not disk.is_dir(folder) or disk.is_file(folder / CHART_FILE):
        return False
    charts = set(charts_in(folder))
    return bool(charts) and not any(map(_is_object, _yaml_files(folder, charts, DEPTH_MAX)))


def is_library(chart: Path) -> bool:
    return described(read_folder(str(chart))).get("type") == "library"


def changed_charts(folder: Path, ref: str) -> Iterator[tuple[Path, str]]:
    """Each chart below a folder that differs from the merge base with `ref`, and what to upgrade it from.

    A chart also counts as changed if a chart of the same folder that it depends on did. The second part is
    `git:COMMIT`, or empty if the chart is new.
    """
    tree = git.merge_base(ref, str(folder))
    charts = charts_in(folder)
    own = {chart: git.path_in(tree, str(chart)) for chart in charts}
    changed = {chart for chart in charts if git.differs(tree, own[chart])}
    names = {str(described(read_folder(str(chart))).get("name") or chart.name): chart for chart in charts}
    needs = {chart: {names[name] for name in _dependencies(chart) if name in names} for chart in charts}
    while more := {chart for chart in charts if chart not in changed and needs[chart] & changed}:
        changed |= more
    before = f"{git.PREFIX}{git.short(tree)}"
    for chart in charts:
        if chart in changed:
            yield chart, before if git.has(tree, f"{own[chart]}/{CHART_FILE}") else ""


def _dependencies(chart: Path) -> Iterator[str]:
    yield from (str(entry.get("name")) for entry in dependencies_of(read_folder(str(chart))))


def _charts(folder: Path, depth: int) -> Iterator[Path]:
    if disk.is_file(folder / CHART_FILE):
        yield folder
    elif depth:
        for entry in _folders(folder):
            yield from _charts(entry, depth - 1)


def _yaml_files(folder: Path, charts: set[Path], depth: int) -> Iterator[Path]:
    for entry in sorted(disk.entries(folder)):
        if entry.suffix in (".yaml", ".yml") and disk.is_file(entry) and not disk.is_symlink(entry):
            yield entry
    if depth:
        for entry in _folders(folder):
            if entry not in charts:
                yield from _yaml_files(entry, charts, depth - 1)


def _folders(folder: Path) -> Iterator[Path]:
    for entry in disk.entries(folder):
        if disk.is_dir(entry) and not disk.is_symlink(entry) and not entry.name.startswith("."):
            yield entry


def _is_object(file: Path) -> bool:
    if file.stem == "kustomization":
        return True
    return len({found[1] for found in _OBJECT.finditer(disk.read(file, HEAD_BYTES))}) > 1
