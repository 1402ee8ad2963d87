"""Files of the user's, read whole and within limits. Knows nothing of what is in them."""

from __future__ import annotations

import os
import sys
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO

from seatrial.model.errors import CannotContinue
from seatrial.text.source import Text

FILE_BYTES_MAX = 50 * 1024 * 1024
"""Far above any manifest that an API server would take, and small enough to hold."""

STDIN = "-"


def read_text(path: str, doing: str) -> Text:
    """A file that the user named, or standard input for `-`; `doing` says in an error what it was wanted for."""
    return as_text(shown(path), read_bytes(path, doing), doing)


def read_bytes(path: str, doing: str, limit: int = FILE_BYTES_MAX) -> bytes:
    try:
        if path == STDIN:
            data = _read_once(sys.stdin.buffer, limit + 1)
        else:
            with Path(path).open("rb") as file:  # Not only regular files: `-f <(sops -d secrets.yaml)` is a pipe.
                data = file.read(limit + 1)
    except OSError as error:
        raise CannotContinue(f"{shown(path)}: {doing}: {reason(error)}") from None
    if len(data) > limit:
        raise CannotContinue(f"{shown(path)}: {doing}: larger than the maximum of {limit} bytes")
    return data


@lru_cache(maxsize=1)
def _read_once(stream: BinaryIO, size: int) -> bytes:
    """What is piped in can be read once, and steps that deploy it are several."""
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
    """Why the system said no, in its own words, which begin with a capital as sentences do."""
    words = error.strerror or str(error)
    return words[:1].lower() + words[1:]


def refuse_escape(path: Path, inside: Path, named: str) -> None:
    """Refuse a link that leads out of the user's project: a chart by others must not read the rest of the disk."""
    target = path.resolve()
    if not target.is_relative_to(inside):
        raise CannotContinue(f"{named}: the link leads to {target}, outside of {inside}; seatrial does not follow it")


def project_of(folder: Path) -> Path:
    """The git repository that holds a folder, or the folder itself: as far as links may lead."""
    folder = folder.resolve()
    return next((parent for parent in (folder, *folder.parents) if (parent / ".git").exists()), folder)
