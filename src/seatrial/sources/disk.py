"""The only module of `sources` that asks the disk, and keeps a record of the answers. Knows nothing of charts.

The record is what a result depends on: while every answer is still the same, the result is. Pulumi programs read by
themselves; what does that says so with `cannot_be_known`.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

Reads = Mapping[tuple[str, str], str]
"""What was asked, about what, and the answer."""


class FilesRead:
    """What was read while it was kept."""

    def __init__(self) -> None:
        self.reads: dict[tuple[str, str], str] = {}
        self.complete = True
        """Whether everything that was read is in it."""


_RECORD: ContextVar[FilesRead | None] = ContextVar("_RECORD", default=None)


@contextmanager
def recording() -> Iterator[FilesRead]:
    """Keep a record of everything that is read inside of the block."""
    record = FilesRead()
    token = _RECORD.set(record)
    try:
        yield record
    finally:
        _RECORD.reset(token)


def note(question: str, about: str, answer: str) -> None:
    """Record the answer to a question that is not about the disk, such as the commit of a branch."""
    if (record := _RECORD.get()) is not None:
        record.reads.setdefault((question, about), answer)


def cannot_be_known() -> None:
    """Something is read that cannot be listed: by a program, or from a pipe."""
    if (record := _RECORD.get()) is not None:
        record.complete = False


def is_file(path: Path) -> bool:
    _ask("kind", path)
    return path.is_file()


def is_dir(path: Path) -> bool:
    _ask("kind", path)
    return path.is_dir()


def exists(path: Path) -> bool:
    _ask("kind", path)
    return path.exists()


def about(path: Path) -> os.stat_result:
    """Its type; its size is not recorded, since its content is."""
    _ask("kind", path)
    return path.stat()


def is_symlink(path: Path) -> bool:
    _ask("link", path)
    return path.is_symlink()


def resolved(path: Path) -> Path:
    _ask("target", path)
    return path.resolve()


def entries(folder: Path) -> list[Path]:
    """In no particular order."""
    _ask("entries", folder)
    return [*folder.iterdir()]


def below(folder: Path) -> list[Path]:
    """Everything below a folder, in no particular order."""
    found = [*folder.rglob("*")]
    if _RECORD.get() is not None:
        for one in (folder, *(path for path in found if path.is_dir() and not path.is_symlink())):
            _ask("entries", one)
    return found


def matching(folder: Path, pattern: str) -> list[Path]:
    """What a glob finds, in no particular order."""
    found = [*folder.glob(pattern)]
    note("glob", f"{folder}\0{pattern}", _globbed(f"{folder}\0{pattern}"))
    return found


def read(path: Path, size: int = -1) -> bytes:
    """The content of a file, or as much of it."""
    try:
        with path.open("rb") as file:
            data = file.read(size)
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                cannot_be_known()
    except OSError as error:
        note("content", str(path), _error(error))
        raise
    if _RECORD.get() is not None:
        note("content", str(path), digest(data) if size < 0 else _content(str(path)))
    return data


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _ask(question: str, path: Path) -> None:
    record = _RECORD.get()
    if record is not None and (question, str(path)) not in record.reads:
        record.reads[question, str(path)] = ANSWERS[question](str(path))


def _kind(path: str) -> str:
    try:
        return f"{stat.S_IFMT(Path(path).stat().st_mode):o}"
    except (OSError, ValueError) as error:
        return _error(error)


def _link(path: str) -> str:
    try:
        return str(Path(path).readlink())
    except (OSError, ValueError):
        return ""


def _target(path: str) -> str:
    try:
        return os.path.realpath(path)
    except (OSError, ValueError) as error:
        return _error(error)


def _entries(path: str) -> str:
    try:
        return digest("\0".join(sorted(entry.name for entry in Path(path).iterdir())).encode(errors="surrogateescape"))
    except (OSError, ValueError) as error:
        return _error(error)


def _content(path: str) -> str:
    try:
        return digest(Path(path).read_bytes())
    except (OSError, ValueError) as error:
        return _error(error)


def _globbed(both: str) -> str:
    folder, _, pattern = both.partition("\0")
    try:
        return digest("\0".join(sorted(map(str, Path(folder).glob(pattern)))).encode(errors="surrogateescape"))
    except (OSError, ValueError) as error:
        return _error(error)


def _error(error: OSError | ValueError) -> str:
    return f"error {getattr(error, 'errno', '')}"


ANSWERS: Mapping[str, Callable[[str], str]] = {
    "kind": _kind,
    "link": _link,
    "target": _target,
    "entries": _entries,
    "content": _content,
    "glob": _globbed,
}
"""How each question about a path is asked again."""
