"""Opening charts: from a folder, a .tgz or a commit to a chart that Helm renders from memory. Renders nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from posixpath import normpath
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from seatrial.model import lazy_re
from seatrial.model.errors import CannotContinue, NothingToCheck
from seatrial.model.resource import Body
from seatrial.sources import disk, git
from seatrial.sources.charts.dependencies import (
    CHART_FILE,
    LOCK_FILES,
    OLD_FILE,
    VALUES_FILE,
    dependencies_of,
    described,
    gathered,
)
from seatrial.sources.charts.files import (
    CHART_BYTES_MAX,
    ChartFiles,
    TooLarge,
    archived,
    read_archive,
    read_commit,
    read_folder,
    with_file,
)
from seatrial.sources.charts.lacking import LackingChart
from seatrial.sources.charts.output import loaded, refused
from seatrial.sources.charts.schemas import SCHEMA_FILE, without_references
from seatrial.sources.charts.values import values_in
from seatrial.sources.files import as_text, link_limits, read_bytes, roots_of, shown, within
from seatrial.text.source import Text

TEMPLATES = "templates/"
OWN = (CHART_FILE, VALUES_FILE, SCHEMA_FILE, OLD_FILE, *LOCK_FILES)
FOLDERS = (TEMPLATES, "crds/")
"""What Helm itself reads of a chart. Templates read the rest as `.Files`."""

_READS_FILES = b"Files"
_NOT_IN_NAMES = lazy_re.compile(r"[^a-z0-9-]+")
RELEASE_NAME_MAX = 53
_CASE = lazy_re.compile(r"ci/[^/]*-values\.yaml")
"""Where chart-testing (`ct`) looks for the values a chart is tested with."""


class Loading(Struct, frozen=True):
    """Loads a chart into Helm's library. Equal for equal charts, also if they were opened twice."""

    archive: bytes

    def __call__(self) -> Any:
        """The chart, for one action: rendering removes disabled subcharts from it."""
        return loaded(self.archive)


class ChartSource(Struct, frozen=True, dict=True):
    """A chart in memory, with the dependencies that were found."""

    path: str
    """As the user typed it."""
    name: str
    version: str
    files: ChartFiles
    archive: bytes
    lacking: tuple[LackingChart, ...] = ()
    """Dependencies that are not on disk."""
    cases: Mapping[str, Text] = {}
    """The test values files of the chart, by name: `ci/ha-values.yaml`."""
    next_version: str = ""
    """The version to which it was raised in memory; empty for a chart as it is."""

    @property
    def release(self) -> str:
        """The name of its release where the user gives none."""
        return release_name(self.name)

    @property
    def missing_dependencies(self) -> tuple[str, ...]:
        return tuple(one.called for one in self.lacking)

    def as_deployed(self, values: Body) -> ChartSource:
        """The chart without files that nothing reads. Helm compresses all of it into every record of a release.

        That a record may be too large for the API server is not rehearsed.
        """
        return self if _READS_FILES in msgspec.json.encode(values) else self._without_unread

    @cached_property
    def _without_unread(self) -> ChartSource:
        lean = _without_unread(self.files)
        return self if lean is None else replace(self, archive=archived(lean, self.name))

    @property
    def load(self) -> Loading:
        return Loading(self.archive)


def release_name(chart: str) -> str:
    """The name of a chart, or one like it that is valid for a release and for the objects that are named after it.

    A release may have at most 53 characters (`MaxReleaseNameLen` in pkg/chart/common/util/validate_name.go of Helm 4.2)
    and may have dots, which Services may not.
    """
    alike = _NOT_IN_NAMES.sub("-", chart.lower()).strip("-")
    return alike[:RELEASE_NAME_MAX].strip("-") or "release"


def _without_unread(chart: ChartFiles) -> ChartFiles | None:
    """The chart with nothing but what Helm itself reads; None if a template or a value may read other files."""
    if any(_READS_FILES in chart.files.get(path, b"") for path in chart.files if path.startswith(TEMPLATES)):
        return None
    if _READS_FILES in chart.files.get(VALUES_FILE, b""):
        return None
    inner: dict[str, ChartFiles] = {}
    for entry, subchart in chart.subcharts.items():
        if (lean := _without_unread(subchart)) is None:
            return None
        inner[entry] = lean
    kept = {path: content for path, content in chart.files.items() if path in OWN or path.startswith(FOLDERS)}
    return replace(chart, files=kept, subcharts=inner)


class TemplateFile(Struct, frozen=True):
    """The user's file behind a name in the rendered output."""

    inner: tuple[str, ...]
    """The path through charts/ to the chart that contains it."""
    path: str
    text: Text


def open_chart(path: str, beside: str = "", folder: str = "") -> ChartSource:
    """The chart at a path; for `git:REF` the chart at `beside` at that commit, for `git:REF:path` another one.

    `folder` is the input that holds the chart, if it is not the chart itself.
    """
    source = open_any_chart(path, beside, folder)
    if described(source.files).get("type") == "library":
        what = f"{source.name} is a library chart, which has no objects of its own"
        raise NothingToCheck(f"{shown(path)}: {what}; use --consumers DIR to check the charts that depend on it")
    return source


def open_any_chart(path: str, beside: str = "", folder: str = "") -> ChartSource:
    """Like `open_chart`, but accepts library charts."""
    return opened(path, _files(path, beside, folder))


def opened(path: str, files: ChartFiles) -> ChartSource:
    """The chart of these files, under the name `path`."""
    if CHART_FILE not in files.files:
        raise CannotContinue(f"{shown(path)}: open the chart: Chart.yaml file is missing")
    source = _source(path, files)
    _refuse_invalid(path, source.archive)
    return source


def with_texts(source: ChartSource, texts: Mapping[str, str]) -> ChartSource:
    """The chart with these files replaced or added; paths are as the user would type them."""
    known, files = _replaced(source.files, texts)
    new = {path for path in texts if path not in known and path.startswith(files.shown)}
    for path in sorted(new):
        files = with_file(files, (), path.removeprefix(files.shown), texts[path].encode())
    changed = _source(source.path, files)
    lacking = {one.called: one for one in (*source.lacking, *changed.lacking)}
    return replace(changed, lacking=tuple(lacking.values()))


def without_schemas(source: ChartSource) -> ChartSource:
    """The chart without its values schemas, as with `--skip-schema-validation`."""
    files = _without(source.files, SCHEMA_FILE)
    return replace(source, files=files, archive=archived(files, source.name))


def schema_notes(chart: ChartFiles) -> Iterator[str]:
    """A sentence for each schema of a chart and its subcharts that Helm gets without some references."""
    if found := without_references(chart.files.get(SCHEMA_FILE, b"")).left_out:
        more = f" and {len(found) - 1} more" if found[1:] else ""
        relative = any(":" not in one for one in found)
        root = "; Helm reads a relative one from the root of the disk, not from the chart" if relative else ""
        words = f"values are validated without the reference to {found[0]}{more}, which seatrial does not load{root}"
        yield f"{chart.shown}{SCHEMA_FILE}: {words}"
    for subchart in chart.subcharts.values():
        yield from schema_notes(subchart)


def own_values(source: ChartSource) -> Body:
    """The default values of the chart."""
    return values_of_files(source.files)


def values_of_files(files: ChartFiles) -> Body:
    """The default values in the files of a chart or subchart."""
    content = files.files.get(VALUES_FILE, b"")
    return values_in(as_text(files.shown + VALUES_FILE, content, "read the values of the chart"))


def with_own_values(source: ChartSource, values: Body) -> ChartSource:
    """The chart with other default values."""
    files = with_file(source.files, (), VALUES_FILE, msgspec.json.encode(values))
    return replace(source, files=files, archive=archived(files, source.name))


def find_file(files: ChartFiles, rendered: str) -> TemplateFile | None:
    """The file behind a name such as `app/charts/db/templates/cm.yaml`, where `db` may be an alias."""
    _, *steps = rendered.split("/")
    inner: list[str] = []
    chart = files
    while len(steps) > 2 and steps[0] == "charts":
        entry = _entry(chart, steps[1])
        if entry is None:
            return None
        inner.append(entry)
        chart = chart.subcharts[entry]
        steps = steps[2:]
    path = "/".join(steps)
    if path not in chart.files:
        return None
    return TemplateFile(tuple(inner), path, as_text(chart.shown + path, chart.files[path], "read the template"))


def template_texts(chart: ChartFiles) -> Iterator[Text]:
    """Every template file of a chart and its subcharts."""
    for path, content in chart.files.items():
        if path.startswith("templates/"):
            yield as_text(chart.shown + path, content, "read the template")
    for subchart in chart.subcharts.values():
        yield from template_texts(subchart)


def _without(chart: ChartFiles, name: str) -> ChartFiles:
    files = {path: content for path, content in chart.files.items() if path != name}
    return replace(chart, files=files, subcharts={k: _without(v, name) for k, v in chart.subcharts.items()})


def _replaced(chart: ChartFiles, texts: Mapping[str, str]) -> tuple[set[str], ChartFiles]:
    """The chart with its existing files replaced, and the paths that were replaced."""
    known = {chart.shown + path for path in chart.files if chart.shown + path in texts}
    files = {
        path: texts[named].encode() if (named := chart.shown + path) in known else content
        for path, content in chart.files.items()
    }
    subcharts: dict[str, ChartFiles] = {}
    for entry, subchart in chart.subcharts.items():
        more, subcharts[entry] = _replaced(subchart, texts)
        known |= more
    return known, replace(chart, files=files, subcharts=subcharts)


def _files(path: str, beside: str, folder: str) -> ChartFiles:
    if not git.is_ref(path) and disk.is_dir(Path(path)):
        return read_folder(path, roots_of(Path(path), beside, folder))
    if not git.is_ref(path):
        return _read_archive(path)
    tree, own = git.located(path, beside)
    files = read_commit(tree, own)
    if not files.files:
        where = f"no {own} at {tree.ref}"
        raise CannotContinue(f"{path}: {where}; if the chart was in another folder, use git:{tree.ref}:FOLDER")
    return files


def _read_archive(path: str) -> ChartFiles:
    data = read_bytes(path, "open the chart", CHART_BYTES_MAX)
    try:
        # First, since it counts all that is unpacked; Helm counts each archive in charts/ by itself.
        found: ChartFiles | CannotContinue = read_archive(data, shown(path))
    except TooLarge:
        raise
    except CannotContinue as why:
        found = why
    _refuse_invalid(path, data)
    if isinstance(found, CannotContinue):
        raise found
    return found


def _refuse_invalid(path: str, archive: bytes) -> None:
    """Helm itself validates the chart."""
    if error := refused(archive):
        raise CannotContinue(f"{shown(path)}: open the chart: {error}")


def _source(path: str, files: ChartFiles) -> ChartSource:
    complete = gathered(files)
    about = described(files)
    name = str(about.get("name") or "chart")
    return ChartSource(
        path=path,
        name=name,
        version=str(about.get("version") or ""),
        files=complete.chart,
        archive=archived(complete.chart, name),
        lacking=complete.missing,
        cases=_cases(files),
    )


def _cases(files: ChartFiles) -> dict[str, Text]:
    """The values files in `ci/`, which .helmignore often excludes from the chart."""
    found = {path: content for path, content in files.files.items() if _CASE.fullmatch(path)}
    if files.tree is not None:
        inside = git.files_in(files.tree, normpath(f"{files.folder}/ci"))
        found = {f"ci/{name}": content for name, content in inside.items() if _CASE.fullmatch(f"ci/{name}")}
    elif files.folder:
        limits = link_limits(Path(files.folder), files.roots)
        paths = [within(path, *limits) for path in disk.matching(Path(files.folder, "ci"), "*-values.yaml")]
        found = {f"ci/{path.name}": read_bytes(str(path), "read the values file") for path in paths}
    return {name: as_text(files.shown + name, found[name], "read the values file") for name in sorted(found)}


def _entry(chart: ChartFiles, called: str) -> str | None:
    """The entry in charts/ of a subchart, by its alias or its own name."""
    aliases = [entry for entry in dependencies_of(chart) if entry.get("alias") == called]
    wanted = aliases[0] if aliases else {"name": called}
    found = [
        (str(about.get("version")) != str(wanted.get("version")), entry)
        for entry, subchart in chart.subcharts.items()
        if (about := described(subchart)).get("name") == wanted.get("name")
    ]
    return min(found)[1] if found else None
