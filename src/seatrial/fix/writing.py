"""Which files fixes may change, and writing them: whole or not at all, and never outside of the input."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from seatrial.model.errors import CannotContinue
from seatrial.model.result import Patch
from seatrial.sources import TRIAL, git, kind_of
from seatrial.sources.files import STDIN, read_bytes, reason

OUTSIDE = "is outside of the input"


class WrittenFile(Struct, frozen=True):
    """What became of one file."""

    patch: Patch
    error: str = ""
    """Why it was left alone."""


def guard(inputs: Sequence[str], repos: Sequence[str] = (), *, writes: bool) -> Callable[[str], str]:
    """Says why a file is not to be changed; an empty text if it may be.

    `repos` are values of `--repo`: a checkout that contains the input is a part of it.
    """
    given = [_root(path).resolve() for path in inputs if path != STDIN]
    checkouts = (Path(flag.rpartition("=")[2]).resolve() for flag in repos)
    roots = [*given, *(one for one in checkouts if any(path.is_relative_to(one) for path in given))]

    def why_not(file: str) -> str:
        if git.is_ref(file):
            return f"{file} is of a commit"
        if ".tgz:" in file:
            return f"{file} is in an archive"
        path = Path(file)
        if path.exists() and not path.is_file():
            return f"{file} is not a file on disk"
        if not any(path.resolve().is_relative_to(root) for root in roots):
            return f"{file} {OUTSIDE}"
        if writes and not _writable(path.resolve()):
            return f"{file} is read-only"
        return ""

    return why_not


def written(patches: Iterable[Patch]) -> Iterator[WrittenFile]:
    """Write each file. One that is no longer as it was read, or cannot be written, is left alone."""
    for patch in patches:
        try:
            now = _now(patch)
        except CannotContinue as why:
            yield WrittenFile(patch, str(why))
            continue
        if now != patch.before.encode():
            yield WrittenFile(patch, f"{patch.file}: left alone: the file has changed meanwhile")
            continue
        try:
            _replace(Path(patch.file).resolve(), patch.after.encode())
        except OSError as error:
            yield WrittenFile(patch, f"{patch.file}: left alone: {reason(error)}")
            continue
        yield WrittenFile(patch)


def _now(patch: Patch) -> bytes:
    """The file as it is; a file that a fix adds must not exist."""
    if not patch.before and not Path(patch.file).exists():
        return b""
    return read_bytes(patch.file, "read the file again")


def _root(path: str) -> Path:
    """The folder of a trial file, which names its sources relative to itself; else the input."""
    return Path(path).parent if kind_of(path) == TRIAL else Path(path)


def _writable(path: Path) -> bool:
    folder = next(parent for parent in path.parents if parent.is_dir())
    return (os.access(path, os.W_OK) or not path.exists()) and os.access(folder, os.W_OK)


def _replace(path: Path, content: bytes) -> None:
    """Write a file; one without content is removed."""
    if not content.strip():
        path.unlink()
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        beside.write_bytes(content)
        if path.exists():
            shutil.copymode(path, beside)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
