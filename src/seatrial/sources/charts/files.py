"""The files of a chart and its subcharts, from a folder, an archive or a commit. Knows no templates or values.

Limits and errors are those of Helm's own loaders (pkg/chart/loader/archive and pkg/chart/v2/loader of 4.2), so that
this reads exactly what Helm would load.
"""

from __future__ import annotations

import gzip
import io
import stat
import tarfile
import zlib
from collections.abc import Iterator, Mapping
from itertools import chain
from os import stat_result
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from seatrial.model import lazy_re
from seatrial.model.errors import CannotContinue
from seatrial.sources import disk, git
from seatrial.sources.charts import helmignore
from seatrial.sources.charts.schemas import SCHEMA_FILE, without_references
from seatrial.sources.files import (
    added_below,
    as_text,
    instead_of,
    is_document,
    link_limits,
    read_bytes,
    reason,
    roots_of,
    shown,
    within,
)

FILE_BYTES_MAX = 5 * 1024 * 1024
CHART_BYTES_MAX = 100 * 1024 * 1024
FILES_MAX = 10_000
"""Helm has no such limit; a chart with more files needs a .helmignore."""

_BOM = b"\xef\xbb\xbf"
_DRIVE = lazy_re.compile(r"[a-zA-Z]:/")


class TooLarge(CannotContinue):
    """An archive that is unpacked to more than Helm allows for a chart."""


class ChartFiles(Struct, frozen=True):
    """One chart: its own files by path, and its subcharts by their names in charts/."""

    shown: str
    """The prefix that the user would type before the path of a file: `v2/`, or `demo-1.0.0.tgz:`."""
    files: Mapping[str, bytes]
    subcharts: Mapping[str, ChartFiles] = {}
    folder: str = ""
    """The folder on disk or in the commit; empty for an archive."""
    tree: git.Tree | None = None
    """The commit it was read from."""
    roots: tuple[Path, ...] = ()
    """Where on disk its files may be, and those of its dependencies."""


def read_folder(folder: str, roots: tuple[Path, ...] = ()) -> ChartFiles:
    """The chart in a folder, without the files that its .helmignore excludes."""
    root = Path(folder)
    roots = roots or roots_of(root)
    limits = link_limits(root, roots)
    prefix = "" if shown(folder) == "." else shown(folder) + "/"
    ignore = root / helmignore.FILE
    named = prefix + helmignore.FILE
    rules = read_bytes(str(within(ignore, *limits, named=named)), "read the rules") if disk.is_file(ignore) else None
    text = None if rules is None else as_text(named, rules, "read the rules")
    reading = _Reading(prefix, helmignore.rules(text), limits)
    found: dict[str, bytes] = {}
    left = CHART_BYTES_MAX
    added = ((path.relative_to(disk.resolved(root)).as_posix(), path) for path in added_below(root))
    for name, path in chain(_walk(root, "", (disk.resolved(root),), reading), added):
        if (instead := instead_of(path)) is not None and not instead.strip():
            continue  # A fix that leaves nothing of a file removes it.
        found[name] = _read(path, prefix + name)
        left -= len(found[name])
        if left < 0:
            raise CannotContinue(f"{shown(folder)}: read the chart: larger than the maximum size {CHART_BYTES_MAX}")
        if len(found) > FILES_MAX:
            raise CannotContinue(
                f"{shown(folder)}: read the chart: more than {FILES_MAX} files; exclude some in .helmignore"
            )
    return _with_roots(_assembled(found, prefix, shown(folder), left), roots)


def read_commit(tree: git.Tree, folder: str) -> ChartFiles:
    """The chart in a folder of a commit, without the files that its .helmignore excludes."""
    prefix = tree.shown("" if folder == "." else f"{folder}/")
    found = {name: content.removeprefix(_BOM) for name, content in git.files_in(tree, folder).items()}
    ignore = found.get(helmignore.FILE)
    text = None if ignore is None else as_text(prefix + helmignore.FILE, ignore, "read the rules")
    rules = helmignore.rules(text)
    kept = {name: found[name] for name in sorted(found, key=str.encode) if not _ignored(rules, name)}
    return _in_commit(_assembled(kept, prefix, folder, CHART_BYTES_MAX), tree)


def read_archive(data: bytes, named: str, left: int = CHART_BYTES_MAX) -> ChartFiles:
    """The chart in a .tgz; `named` is the archive as the user would type it."""
    return _assembled(_unpacked(data, named, left), f"{named}:", "", left)


def archived(chart: ChartFiles, name: str) -> bytes:
    """The chart as a .tgz that Helm loads from memory. The same chart gives the same bytes.

    Its schemas refer to nothing outside of them: Helm would request it or read it from the disk.
    """
    out = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=out, mode="wb", compresslevel=1, mtime=0) as zipped,
        tarfile.open(fileobj=zipped, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for path, content in _flat(chart, name):
            # Helm takes a backslash for a separator, and would see other files and schemas.
            member = tarfile.TarInfo(path.replace("\\", "_"))
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return out.getvalue()


def with_file(chart: ChartFiles, inner: tuple[str, ...], path: str, content: bytes) -> ChartFiles:
    """The chart with one file replaced, in itself or in the subchart at `inner`."""
    if not inner:
        return replace(chart, files={**chart.files, path: content})
    changed = with_file(chart.subcharts[inner[0]], inner[1:], path, content)
    return replace(chart, subcharts={**chart.subcharts, inner[0]: changed})


class _Reading(Struct, frozen=True):
    """The settings for reading one folder."""

    prefix: str
    rules: tuple[helmignore.IgnoreRule, ...]
    limits: tuple[Path, ...]
    """The folders that symlinks may lead to."""


def _ignored(rules: tuple[helmignore.IgnoreRule, ...], name: str) -> bool:
    parts = name.split("/")
    above = ("/".join(parts[:depth]) for depth in range(1, len(parts)))
    return helmignore.ignored(rules, name, folder=False) or any(
        helmignore.ignored(rules, parent, folder=True) for parent in above
    )


def _in_commit(chart: ChartFiles, tree: git.Tree) -> ChartFiles:
    subcharts = {entry: _in_commit(subchart, tree) for entry, subchart in chart.subcharts.items()}
    return replace(chart, tree=tree, subcharts=subcharts)


def _with_roots(chart: ChartFiles, roots: tuple[Path, ...]) -> ChartFiles:
    subcharts = {entry: _with_roots(subchart, roots) for entry, subchart in chart.subcharts.items()}
    return replace(chart, roots=roots, subcharts=subcharts)


def _walk(folder: Path, inside: str, above: tuple[Path, ...], reading: _Reading) -> Iterator[tuple[str, Path]]:
    """Every file that is not ignored, by its path in the chart. Follows symlinks as Helm does, inside the project."""
    for path in sorted(disk.entries(folder), key=lambda path: path.name.encode(errors="surrogateescape")):
        name = inside + path.name
        named = reading.prefix + name
        if is_document(name) and disk.is_symlink(path) and _leads_out(path, reading.limits):
            continue
        mode = _about(path, named).st_mode
        if helmignore.ignored(reading.rules, name, folder=stat.S_ISDIR(mode)):
            continue
        if disk.is_symlink(path):
            within(path, *reading.limits, named=named)
        if stat.S_ISDIR(mode):
            if disk.resolved(path) in above:
                raise CannotContinue(f"{named}: the symlink points to a folder that contains it")
            yield from _walk(path, name + "/", (*above, disk.resolved(path)), reading)
        elif stat.S_ISREG(mode):
            yield name, path
        else:
            raise CannotContinue(f"{named}: read the chart: cannot load irregular file")


def _leads_out(path: Path, limits: tuple[Path, ...]) -> bool:
    """Whether a symlink leads out of these folders or to nothing."""
    try:
        return not disk.exists(within(path, *limits))
    except CannotContinue:
        return True


def _about(path: Path, named: str) -> stat_result:
    try:
        return disk.about(path)
    except OSError as error:
        raise CannotContinue(f"{named}: read the chart: {reason(error)}") from None


def _read(path: Path, named: str) -> bytes:
    if (instead := instead_of(path)) is not None:
        return instead.removeprefix(_BOM)
    if _about(path, named).st_size > FILE_BYTES_MAX:
        raise CannotContinue(f"{named}: read the chart: larger than the maximum file size {FILE_BYTES_MAX}")
    try:
        return disk.read(path).removeprefix(_BOM)
    except OSError as error:
        raise CannotContinue(f"{named}: read the chart: {reason(error)}") from None


def _unpacked(data: bytes, named: str, left: int) -> dict[str, bytes]:
    doing = f"{named}: read the chart archive"
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as zipped:
            raw = zipped.read(left + 1)
        if len(raw) > left:
            raise TooLarge(f"{doing}: decompressed chart is larger than the maximum size {CHART_BYTES_MAX}")
        with tarfile.open(fileobj=io.BytesIO(raw), mode="r:") as tar:
            return dict(_members(tar, doing))
    except (OSError, EOFError, zlib.error, tarfile.TarError) as error:
        words = reason(error) if isinstance(error, OSError) else str(error)
        raise CannotContinue(f"{doing}: {words}") from None


def _members(tar: tarfile.TarFile, doing: str) -> Iterator[tuple[str, bytes]]:
    for count, member in enumerate(tar):
        if member.isdir():
            continue
        if count > FILES_MAX:
            raise CannotContinue(f"{doing}: more than {FILES_MAX} files")
        if member.size > FILE_BYTES_MAX:
            what = f'decompressed chart file "{member.name}" is larger than the maximum file size {FILE_BYTES_MAX}'
            raise CannotContinue(f"{doing}: {what}")
        content = tar.extractfile(member) if member.isreg() else None
        yield _path_in_chart(member.name, doing), content.read().removeprefix(_BOM) if content else b""


def _path_in_chart(member: str, doing: str) -> str:
    """The path without the chart's own folder; the error texts are those of `LoadArchiveFiles`."""
    top, *rest = member.replace("\\", "/").split("/") if "\\" in member else member.split("/")
    path = "/".join(rest)
    if path.startswith("/"):
        raise CannotContinue(f"{doing}: chart illegally contains absolute paths")
    clean = Path(path).as_posix()
    if clean == ".":
        words = "chart illegally contains content outside the base directory"
        raise CannotContinue(f'{doing}: {words}: "{member}"')
    if ".." in clean.split("/"):
        raise CannotContinue(f"{doing}: chart illegally references parent directory")
    if _DRIVE.match(clean):
        raise CannotContinue(f"{doing}: chart contains illegally named files")
    if top == "Chart.yaml":
        raise CannotContinue(f"{doing}: chart yaml not in base directory")
    return clean


def _assembled(found: Mapping[str, bytes], prefix: str, folder: str, left: int) -> ChartFiles:
    """A chart from its files; folders and archives in charts/ become subcharts."""
    own: dict[str, bytes] = {}
    inner: dict[str, dict[str, bytes]] = {}
    for path, content in found.items():
        entry, _, below = path.removeprefix("charts/").partition("/")
        if not path.startswith("charts/") or not (below or entry.endswith(".tgz")):
            own[path] = content
        elif entry[0] not in "_.":  # Helm does not load such names.
            inner.setdefault(entry, {})[below] = content
    subcharts: dict[str, ChartFiles] = {}
    left -= sum(map(len, own.values()))
    for entry, files in inner.items():
        named = f"{prefix}charts/{entry}"
        if entry.endswith(".tgz"):
            subchart = read_archive(files.get("", b""), named, left)
        else:
            subchart = _assembled(files, f"{named}/", f"{folder}/charts/{entry}" if folder else "", left)
        subcharts[entry] = subchart
        left -= sum(len(content) for _, content in _flat(subchart, ""))
    return ChartFiles(prefix, own, subcharts, folder)


def _flat(chart: ChartFiles, at: str) -> Iterator[tuple[str, bytes]]:
    for path in sorted(chart.files):
        content = chart.files[path]
        yield f"{at}/{path}", without_references(content).content if path == SCHEMA_FILE else content
    for entry in sorted(chart.subcharts):
        stem = entry.removesuffix(".tgz")
        folder = stem if stem == entry or stem not in chart.subcharts else f"{stem}-tgz"
        yield from _flat(chart.subcharts[entry], f"{at}/charts/{folder}")
