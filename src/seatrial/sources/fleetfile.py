"""The inputs of a fleet: files that list trials, folders of charts, and globs. Rehearses nothing."""

from __future__ import annotations

import glob
from collections.abc import Iterator
from pathlib import Path

from seatrial.model.errors import CannotContinue
from seatrial.model.fleet import FleetFile, Matrix
from seatrial.sources import MANIFESTS, disk, kind_of
from seatrial.sources.charts.dependencies import CHART_FILE
from seatrial.sources.charts.folder import charts_in, is_folder_of_charts, is_library
from seatrial.sources.files import read_text, shown
from seatrial.sources.typed import converted
from seatrial.text.yamlfile import documents

YAML = (".yaml", ".yml")
ARCHIVE = ".tgz"


def read_fleet(path: str) -> tuple[Matrix, ...] | None:
    """The trials that a file lists, with paths from the current folder; None if it is not such a file."""
    if not path.endswith(YAML) or not disk.is_file(Path(path)):
        return None
    document = next(documents(read_text(path, "read the file")), None)
    if document is None or not isinstance(document.body, dict) or "fleet" not in document.body:
        return None
    folder = Path(path).parent
    return tuple(_moved(matrix, folder) for matrix in converted(document, FleetFile).fleet)


def inputs_of(pattern: str) -> list[str]:
    """What a path or a glob names, by name: each chart of a folder of charts, but no library charts."""
    if not glob.has_magic(pattern) or disk.exists(Path(pattern)):
        kind_of(pattern)  # Says what is wrong with a path that is none.
        return list(charts_or_itself(pattern))
    anchor = Path(Path(pattern).anchor)
    matches = sorted(map(str, disk.matching(anchor, str(Path(pattern).relative_to(anchor)))))
    found = [one for path in matches if _is_input(path) for one in _usable(path)]
    if not found:
        raise CannotContinue(f"{pattern}: matches no chart, trial file or manifest")
    return found


def _usable(path: str) -> Iterator[str]:
    if not is_chart(path) or not is_library(Path(path)):
        yield from charts_or_itself(path)


def is_chart(path: str) -> bool:
    return disk.is_file(Path(path, CHART_FILE))


def holds_charts(path: str) -> bool:
    """Whether a path of the user's is a folder of charts, and nothing else that can be rehearsed."""
    return kind_of(path) == MANIFESTS and is_folder_of_charts(path)


def charts_or_itself(path: str) -> Iterator[str]:
    """Each chart of a folder of charts, without library charts; any other path as it is."""
    if holds_charts(path):
        yield from (shown(str(chart)) for chart in charts_in(Path(path)) if not is_library(chart))
    else:
        yield shown(path)


def _is_input(path: str) -> bool:
    """Whether a match of a glob is something to rehearse, and not a README beside it."""
    if disk.is_file(Path(path)):
        return path.endswith((*YAML, ARCHIVE))
    return any(file.suffix in YAML for file in disk.below(Path(path)))


def _moved(matrix: Matrix, folder: Path) -> Matrix:
    """The same with paths from the current folder."""

    def moved(path: str) -> str:
        return shown(str(folder / path)) if path and not path.startswith("git:") else path

    def files(given: str | tuple[str, ...]) -> tuple[str, ...]:
        return tuple(map(moved, (given,) if isinstance(given, str) else given))

    return Matrix(
        inputs=tuple(map(moved, matrix.inputs)),
        old=tuple(map(moved, matrix.old)),
        values=tuple(map(files, matrix.values)),
        engines=matrix.engines,
        kube_versions=matrix.kube_versions,
        steps=matrix.steps,
        namespace=matrix.namespace,
        assume=tuple(map(moved, matrix.assume)),
    )
