"""Lists in a body. Empty entries are skipped. Knows no kind."""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.model.resource import Body, listed


def entries(body: Body, *path: str | int) -> Iterator[tuple[int, Body]]:
    """The mappings of a list, each with its index."""
    return ((index, entry) for index, entry in enumerate(listed(body, *path)) if isinstance(entry, dict))
