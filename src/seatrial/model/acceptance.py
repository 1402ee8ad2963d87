"""What the user accepts: findings that are not reported, where that is written, and why. Pure data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Literal

from msgspec import Struct

from seatrial.model.finding import Finding
from seatrial.model.resource import Place, Ref

ANNOTATION = "seatrial.dev/ignore"


class Suppression(Struct, frozen=True):
    """One rule that is ignored somewhere: for lines of a file, for an object, or for what an entry selects."""

    rule: str
    """As written: a name, a code, or the beginning of a code. Empty if no rule is named."""
    source: Literal["comment", "annotation", "entry"]
    place: Place
    reason: str = ""
    lines: tuple[int, ...] = ()
    """Of a comment: the lines of its file that it is about."""
    object: Ref | None = None
    """Of an annotation: the object that has it."""
    path: str = ""
    """Of an entry: a glob for the files of findings, from the folder of seatrial.yaml."""
    objects: str = ""
    """Of an entry: a glob for `Kind/namespace/name`."""


class Ignored(Struct, frozen=True):
    """A finding that is not reported."""

    finding: Finding
    by: Suppression


class Idle(Struct, frozen=True):
    """A suppression that ignores nothing."""

    by: Suppression
    known: bool
    """Whether there is such a rule."""
    meant: str = ""
    """The rule whose name is most like an unknown one."""


class Audit(Struct, frozen=True):
    """What is checked after all rules: what the user wrote for seatrial itself."""

    code: str
    name: str
    check: Callable[[Sequence[Idle]], Iterator[Finding]]


class WrittenObject(Struct, frozen=True):
    """An object of the newest revision of the input."""

    ref: Ref
    file: str
    ignore: str = ""
    """Its annotation seatrial.dev/ignore."""
    place: Place | None = None
    """Where that annotation is."""
