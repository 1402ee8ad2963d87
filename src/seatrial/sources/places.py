"""The places of object fields. Sources register a locator; a place is looked up only when it is needed.

A locator lives as long as the origin that it belongs to, and so as long as any release or finding that names it.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from weakref import WeakKeyDictionary

from seatrial.model.resource import Origin, Path, Place, Pointer

Locate = Callable[[Path], Place]
"""The place of the value at a path, or of its nearest parent that exists in the file."""

_LOCATORS: WeakKeyDictionary[Origin, Locate] = WeakKeyDictionary()
_NUMBERS = count(1)


def origin(file: str, locate: Locate) -> Origin:
    """A new origin with this locator."""
    made = Origin(file, next(_NUMBERS))
    _LOCATORS[made] = locate
    return made


def place_of(pointer: Pointer) -> Place:
    """The line of a pointer; the first line of the file if it is unknown."""
    if pointer.place is not None:
        return pointer.place
    locate = _LOCATORS.get(pointer.origin)
    return locate(pointer.path) if locate else Place(pointer.origin.file, 1, "file")
