"""The files that a check reads, packed for another machine, and unpacked there under the same names."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import chdir, contextmanager
from pathlib import Path

from msgspec import Struct

from seatrial.model.errors import CannotContinue
from seatrial.sources import disk, git
from seatrial.sources.charts.dependencies import CHART_FILE, local_dependencies
from seatrial.sources.files import STDIN, read_bytes, shown, within

BYTES_MAX = 100 * 1024 * 1024
DOING = "pack it for --on"


class Packed(Struct, frozen=True):
    """Files by their path from the current folder, and commits that are named by a ref."""

    files: dict[str, bytes]
    inside: str = "."
    """The current folder, from the root of its git checkout."""
    commits: dict[str, dict[str, bytes]] = {}
    """By ref: files by their path from the root of the checkout."""


def packed(paths: Iterable[str], refs: Iterable[str] = (), beside: str = "") -> Packed:
    """Files and folders, charts with their `file://` dependencies; `refs` are `git:REF` of what `beside` names."""
    files: dict[str, bytes] = {}
    for path in paths:
        for folder in _with_dependencies(path):
            files |= _read(folder)
    if sum(map(len, files.values())) > BYTES_MAX:
        raise CannotContinue(f"{beside}: {DOING}: larger than the maximum of {BYTES_MAX} bytes")
    commits: dict[str, dict[str, bytes]] = {}
    inside = "."
    for ref in refs:
        tree, own = git.located(ref, beside)
        inside = git.path_in(tree, ".")
        commits[tree.ref] = _committed(tree, own, beside)
    return Packed(files, inside, commits)


@contextmanager
def unpacked(given: Packed, where: str) -> Iterator[None]:
    """Work in a private folder below `where` with these files, until the block ends."""
    with tempfile.TemporaryDirectory(prefix="seatrial-", dir=where, ignore_cleanup_errors=True) as root:
        top = disk.resolved(Path(root))
        here = top / given.inside
        for ref, files in given.commits.items():
            git.recreate(top, ref, files)
        (top / ".git").mkdir(exist_ok=True)  # Marks the project root, the limit for symlinks.
        here.mkdir(parents=True, exist_ok=True)
        for path, content in given.files.items():
            _write(here / path, content)
        with chdir(here):
            yield


def _with_dependencies(path: str) -> Iterator[str]:
    if path == STDIN:
        raise CannotContinue(f"--on cannot read {shown(path)}; write it to a file first")
    yield path
    if disk.is_file(Path(path, CHART_FILE)):
        yield from local_dependencies(path)


def _read(path: str) -> dict[str, bytes]:
    here = disk.resolved(Path.cwd())
    found = [Path(path)] if not disk.is_dir(Path(path)) else sorted(_walked(Path(path)))
    remedy = "--on sends only what is in the current folder"
    return {os.path.relpath(file): read_bytes(str(within(file, here, remedy=remedy)), DOING) for file in found}


def _walked(folder: Path) -> Iterator[Path]:
    for entry in disk.entries(folder):
        if disk.is_dir(entry) and not disk.is_symlink(entry):
            if entry.name != ".git":
                yield from _walked(entry)
        elif disk.is_file(entry):
            yield entry


def _committed(tree: git.Tree, own: str, beside: str) -> dict[str, bytes]:
    folders = [own]
    if disk.is_file(Path(beside, CHART_FILE)):
        folders += [git.path_in(tree, folder) for folder in local_dependencies(beside)]
    return {
        os.path.normpath(f"{folder}/{name}"): content
        for folder in folders
        for name, content in git.files_in(tree, folder).items()
    }


def _write(file: Path, content: bytes) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
