"""The folder of the cache: private, bounded, and every file written whole or not at all. Knows nothing of results."""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

NAME = "seatrial"
OWNER_ONLY = 0o700
OTHERS = 0o077
BYTES_MAX = 256 * 1024 * 1024
ENTRY_BYTES_MAX = 16 * 1024 * 1024
VARIANTS_MAX = 4
"""How many entries one check has: an input changes back and forth with the branches of a checkout."""
DIGEST_BYTES = hashlib.sha256().digest_size


def folder() -> str | None:
    """`$XDG_CACHE_HOME/seatrial` or `~/.cache/seatrial`. None if that is not a folder of this user alone."""
    if os.name != "posix":
        return None
    given = os.environ.get("XDG_CACHE_HOME", "")
    try:
        around = Path(given) if Path(given).is_absolute() else Path.home() / ".cache"
        own = around / NAME
        own.mkdir(mode=OWNER_ONLY, parents=True, exist_ok=True)
        about = own.lstat()
    except (OSError, RuntimeError):  # No home, a disk that is read-only, a file in its place.
        return None
    private = about.st_uid == os.getuid() and not stat.S_IMODE(about.st_mode) & OTHERS
    return str(own) if private and stat.S_ISDIR(about.st_mode) else None


def read(folder: str, key: str) -> Iterator[bytes]:
    """The entries of a key, the last used first. A damaged one is left out."""
    for path in _last_used_first(Path(folder, key)):
        with suppress(OSError):
            if path.lstat().st_size > ENTRY_BYTES_MAX:
                continue
            data = path.read_bytes()
            if hashlib.sha256(data[DIGEST_BYTES:]).digest() == data[:DIGEST_BYTES]:
                os.utime(path)
                yield data[DIGEST_BYTES:]


def write(folder: str, key: str, variant: str, data: bytes) -> None:
    """Write an entry, and remove the last of too many with the same key. If it cannot be written, there is none."""
    if len(data) > ENTRY_BYTES_MAX:
        return
    own = Path(folder, key)
    with suppress(OSError):
        own.mkdir(mode=OWNER_ONLY, exist_ok=True)
        _write_whole(own / variant, hashlib.sha256(data).digest() + data)
        for path in _last_used_first(own)[VARIANTS_MAX:]:
            path.unlink()


def trim(folder: str) -> None:
    """Remove what was not used for longest until a quarter is free, if there is too much."""
    with suppress(OSError):
        found = [path for own in Path(folder).iterdir() if own.is_dir() for path in own.iterdir()]
        ages = sorted((about.st_mtime_ns, about.st_size, path) for path in found for about in (path.lstat(),))
        left = sum(size for _, size, _ in ages)
        if left <= BYTES_MAX:
            return
        for _, size, path in ages:
            if left <= BYTES_MAX * 3 // 4:
                return
            path.unlink()
            left -= size
            with suppress(OSError):
                path.parent.rmdir()  # Only if it was the last one.


def _write_whole(path: Path, data: bytes) -> None:
    handle, beside = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        Path(beside).replace(path)
    finally:
        Path(beside).unlink(missing_ok=True)


def _last_used_first(folder: Path) -> list[Path]:
    try:
        found = [(path.lstat().st_mtime_ns, path) for path in folder.iterdir()]
    except OSError:
        return []
    return [path for _, path in sorted(found, reverse=True)]
