"""Temporary folders that are removed however this process ends, unless it is killed."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from seatrial.model.errors import CannotContinue

HINT = "set TMPDIR to a folder that exists and has room"
_made: set[str] = set()


@contextmanager
def temporary(prefix: str = "seatrial-", within: str | None = None) -> Iterator[str]:
    folder = made(prefix, within)
    try:
        yield folder
    finally:
        remove(folder)


def made(prefix: str = "seatrial-", within: str | None = None) -> str:
    """A new folder, for a caller that removes it."""
    where = within or parent()
    try:
        folder = tempfile.mkdtemp(prefix=prefix, dir=where)
    except OSError as why:
        raise CannotContinue(f"make a temporary folder in {where}: {why.strerror}; {HINT}") from None
    _made.add(folder)
    return folder


def parent() -> str:
    try:
        return tempfile.gettempdir()
    except OSError:
        raise CannotContinue(f"make a temporary folder: none can be written to; {HINT}") from None


def remove(folder: str) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    _made.discard(folder)


def remove_all() -> None:
    for folder in tuple(_made):
        remove(folder)
