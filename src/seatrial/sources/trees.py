"""All files of a folder, a chart or a commit, by path: what a repository would hold. Knows nothing of their content."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

from seatrial.model.errors import CannotContinue
from seatrial.sources import disk
from seatrial.sources.files import added_below, read_bytes, shown

BYTES_MAX = 64 * 1024 * 1024
LEFT_OUT = (".git", "__pycache__", "node_modules")

Tree = dict[str, bytes]


def tree_at(path: Path, doing: str) -> Tree:
    """The files below a folder, or one file. Links are followed within the folder only."""
    if disk.is_file(path):
        return {path.name: read_bytes(str(path), doing)}
    found: Tree = {}
    top, left = disk.resolved(path), BYTES_MAX
    for file in sorted({*disk.below(path), *added_below(path)}):
        inside = file.relative_to(path if file.is_relative_to(path) else top)
        if set(inside.parts) & set(LEFT_OUT) or disk.is_dir(file) or not disk.resolved(file).is_relative_to(top):
            continue
        found[inside.as_posix()] = data = read_bytes(str(file), doing)
        left -= len(data)
        if left < 0:
            raise CannotContinue(f"{shown(str(path))}: {doing}: larger than the maximum of {BYTES_MAX >> 20} MB")
    return found


def unpacked(archive: bytes) -> Tree:
    """The files of a chart, below a folder with its name."""
    with tarfile.open(fileobj=io.BytesIO(archive)) as packed:
        members = [member for member in packed if member.isfile()]
        return {member.name: opened.read() for member in members if (opened := packed.extractfile(member))}
