"""Lists of a body as their authors left them: an entry may be empty, and is passed over. Knows no kind."""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.model.resource import Body, listed


def entries(body: Body, *path: str | int) -> Iterator[tuple[int, Body]]:
    """The mappings of a list, each with its place."""
    return ((index, entry) for index, entry in enumerate(listed(body, *path)) if isinstance(entry, dict))
