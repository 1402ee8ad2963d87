"""Where the fields of objects are written. Sources say how to find out; nothing is looked up before it is asked for.

A locator lives as long as the origin that it belongs to, and so as long as any release or finding that names it.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from weakref import WeakKeyDictionary

from seatrial.model.resource import Origin, Path, Place, Pointer

Locate = Callable[[Path], Place]
"""The place of the value at a path; of its nearest parent that is written, where it is not."""

_LOCATORS: WeakKeyDictionary[Origin, Locate] = WeakKeyDictionary()
_NUMBERS = count(1)


def origin(file: str, locate: Locate) -> Origin:
    """An origin of its own, whose places `locate` finds."""
    made = Origin(file, next(_NUMBERS))
    _LOCATORS[made] = locate
    return made


def place_of(pointer: Pointer | Place) -> Place:
    """The line that a pointer means; the first of the file where no more is known."""
    if isinstance(pointer, Place):
        return pointer
    locate = _LOCATORS.get(pointer.origin)
    return locate(pointer.path) if locate else Place(pointer.origin.file, 1, "file")
