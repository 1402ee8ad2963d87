"""Reading files of the user, whole and within size limits. Knows nothing of their content."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO

from seatrial.model.errors import CannotContinue
from seatrial.sources import disk
from seatrial.text.source import Text

FILE_BYTES_MAX = 50 * 1024 * 1024
"""Far above any manifest that an API server accepts, and small enough to hold in memory."""

STDIN = "-"

_DOCUMENTS = ("LICENSE", "LICENCE", "COPYING", "NOTICE", "README", "CHANGELOG", "CONTRIBUTING")

_INSTEAD: ContextVar[Mapping[Path, bytes] | None] = ContextVar("_INSTEAD", default=None)


@contextmanager
def reading_instead(texts: Mapping[str, str]) -> Iterator[None]:
    """Read these texts instead of the files of these names. Nothing is written."""
    token = _INSTEAD.set({disk.resolved(Path(path)): text.encode() for path, text in texts.items()})
    try:
        yield
    finally:
        _INSTEAD.reset(token)


def instead_of(path: Path) -> bytes | None:
    """What is read instead of a file, if anything is."""
    instead = _INSTEAD.get()
    return instead.get(disk.resolved(path)) if instead else None


def all_instead() -> dict[str, str]:
    """Every text that is read instead of a file, by the real path of the file: for programs that read by themselves."""
    return {str(path): text.decode() for path, text in (_INSTEAD.get() or {}).items()}


def added_below(folder: Path) -> list[Path]:
    """Files that are read although they are not on disk."""
    root = disk.resolved(folder)
    return sorted(path for path in _INSTEAD.get() or () if path.is_relative_to(root) and not disk.exists(path))


def read_text(path: str, doing: str) -> Text:
    """A file that the user named, or standard input for `-`; `doing` is the action that errors mention."""
    return as_text(shown(path), read_bytes(path, doing), doing)


def read_bytes(path: str, doing: str, limit: int = FILE_BYTES_MAX) -> bytes:
    try:
        if path == STDIN:
            if sys.stdin is None:
                raise CannotContinue(f"{shown(path)}: {doing}: standard input is closed")
            data = _read_once(sys.stdin.buffer, limit + 1)
            disk.cannot_be_known()
        elif (instead := instead_of(Path(path))) is not None:
            data = instead
        else:
            data = disk.read(Path(path), limit + 1)  # Not only regular files: `-f <(sops -d secrets.yaml)` is a pipe.
    except OSError as error:
        raise CannotContinue(f"{shown(path)}: {doing}: {reason(error)}") from None
    if len(data) > limit:
        raise CannotContinue(f"{shown(path)}: {doing}: larger than the maximum of {limit} bytes")
    return data


@lru_cache(maxsize=1)
def _read_once(stream: BinaryIO, size: int) -> bytes:
    """Standard input can be read only once, but several steps deploy it."""
    return stream.read(size)


def as_text(path: str, data: bytes, doing: str) -> Text:
    """Bytes of a file as text; `path` is what the user would type."""
    try:
        return Text(path, data.decode())
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise CannotContinue(f"{path}:{line}: {doing}: not UTF-8 text") from None


def shown(path: str) -> str:
    """A path as the user would type it: `./v2/` is `v2`."""
    return "stdin" if path == STDIN else os.path.normpath(path)


def reason(error: OSError) -> str:
    """The message of the operating system, in lower case."""
    words = error.strerror or str(error)
    return words[:1].lower() + words[1:]


def is_document(path: str) -> bool:
    """Whether a file is for people alone, such as LICENSE or README.md. A symlink of it to elsewhere is skipped."""
    *folders, name = path.split("/")
    return name.partition(".")[0].upper() in _DOCUMENTS and not {"templates", "crds"} & set(folders)


class OutsideOfInput(CannotContinue):
    """A path of the input that leads out of the input."""


def within(path: Path, *roots: Path, named: str = "", remedy: str = "") -> Path:
    """A path that the input names. Refuses what is outside of all roots, and what is neither a file nor a folder.

    A third-party chart must not read the rest of the disk, by `..` or by a symlink, and must not hang at a pipe.
    """
    named = named or shown(str(path))
    try:
        target = disk.resolved(path)
        mode = disk.about(path).st_mode
    except (OSError, RuntimeError):  # It does not exist, or is a symlink in a circle.
        target, mode = Path(os.path.realpath(path)), stat.S_IFREG
    if not any(target.is_relative_to(disk.resolved(root)) for root in roots):
        link = disk.is_symlink(path)
        where = f"{named}: the symlink points to {target}, outside" if link else f"{named} is outside"
        remedy = remedy or f"seatrial does not {'follow' if link else 'read'} it"
        raise OutsideOfInput(f"{where} of {disk.resolved(roots[0])}; {remedy}")
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise CannotContinue(f"{named}: not a regular file; seatrial does not read it")
    return path


def roots_of(folder: Path, *inputs: str) -> tuple[Path, ...]:
    """Where the files of a folder may be: its project, and the current folder if that contains it but no home.

    Also each of these inputs of the user that contains it, or the copy of their project that it is in.
    """
    project, here = project_of(folder), disk.resolved(Path.cwd())
    roots = [project]
    if disk.resolved(folder).is_relative_to(here) and not _contains_home(here):
        roots.append(here)
    for one in map(Path, filter(None, inputs)):
        inside = disk.resolved(folder).is_relative_to(disk.resolved(one))
        roots += [disk.resolved(one)] if inside else _copies(folder, one)
    return tuple(root for index, root in enumerate(roots) if not any(map(root.is_relative_to, roots[:index])))


def link_limits(folder: Path, roots: tuple[Path, ...]) -> tuple[Path, ...]:
    """Where symlinks in a folder may lead: anywhere in its repository or, where there is none, in its roots."""
    project = project_of(folder)
    return (project,) if disk.exists(project / ".git") else roots


def _copies(folder: Path, other: Path) -> Iterator[Path]:
    """The copies of the roots of `other` that hold a folder: /old for /old/charts/app, if `other` is /new/charts/app.

    A single name in common says nothing about what is around it.
    """
    own = disk.resolved(folder).parts
    for root in roots_of(other):
        alike = disk.resolved(other).relative_to(root).parts
        copy = Path(*own[: -len(alike)])
        if len(alike) > 1 and own[-len(alike) :] == alike and not _contains_home(copy):
            yield copy


def _contains_home(folder: Path) -> bool:
    return disk.resolved(Path.home()).is_relative_to(folder)


def project_of(folder: Path) -> Path:
    """The git repository that contains a folder, or the folder itself: the limit for symlinks."""
    folder = disk.resolved(folder)
    return next((parent for parent in (folder, *folder.parents) if disk.exists(parent / ".git")), folder)
