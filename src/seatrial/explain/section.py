"""A part of a page."""

from __future__ import annotations

from msgspec import Struct


class Section(Struct, frozen=True):
    """A table, a list of names, or sentences."""

    title: str
    rows: tuple[tuple[str, ...], ...] = ()
    entries: tuple[str, ...] = ()
    sentences: tuple[str, ...] = ()
