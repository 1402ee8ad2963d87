"""Proposals: edits that may repair a finding, and what a fixer knows when it makes them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from seatrial.model.finding import Finding
from seatrial.model.release import Case, Release, Resource
from seatrial.model.resource import Path, Pointer, Ref
from seatrial.model.timeline import Rehearsal
from seatrial.text.source import Edit, Text


class TextEdit(Struct, frozen=True):
    """An edit of one file. A file that does not exist is a text without content; one that becomes blank is removed."""

    text: Text
    edit: Edit
    template: str = ""
    """The named template that it changes, which other objects may use."""
    path: Path = ()
    """Of which field the line `line` is, if it is in a named template."""
    line: int = 0


Edits = tuple[TextEdit, ...]


class ByHand(Struct, frozen=True):
    """Why no text is changed: `its annotations are written by a helper`."""

    why: str


class Proposal(Struct, frozen=True):
    """One way to repair a finding: edits, or the reason why they must be made by hand."""

    title: str
    change: Edits | ByHand
    why_unsafe: str = ""
    """What else it changes; empty if it is safe."""
    values: tuple[str, ...] = ()
    """`key=value`: what a user must set with it. Without, the input must not render."""
    flags: tuple[str, ...] = ()
    """Flags that the first upgrade with it needs."""


class Problem(Struct, frozen=True):
    """A finding, the case that shows it, and which files may be changed."""

    finding: Finding
    case: Case
    why_not: Callable[[str], str]
    """Why a file is not to be changed; empty if it may be."""
    cases: Sequence[Case] = ()
    """All cases of the check: those of other values, and of other charts that use a library."""
    rehearsals: Sequence[Rehearsal] = ()
    """The rehearsals of its case with its engine."""

    def newest(self, ref: Ref) -> Resource | None:
        """The object as the input writes it: in a file that may be changed, or else in the newest release."""
        found = [one for release in self.releases() for one in (*release.named(ref), *release.crds) if one.ref == ref]
        return next((one for one in found if not self.why_not(one.file)), found[0] if found else None)

    def pointed_at(self, index: int = 0) -> Resource | None:
        """The object of the case that the finding points at."""
        pointer = next(iter(self.finding.pointers[index:]), None)
        if not isinstance(pointer, Pointer):
            return None
        return next((one for one in self.case.all_resources() if one.origin == pointer.origin), None)

    def release_of(self, resource: Resource) -> Release:
        return next(release for release in self.releases() if resource in (*release.resources, *release.crds))

    def releases(self) -> list[Release]:
        """Newest first; each revision once."""
        return list(reversed([release for release in self.case.releases if release is not None]))


class Fixer(Struct, frozen=True):
    """Proposes fixes for the findings of some rules, best first."""

    rules: tuple[str, ...]
    propose: Callable[[Problem], Iterator[Proposal]]


def joined(*changes: Edits | ByHand) -> Edits | ByHand:
    """All edits together, or the first reason against one."""
    for change in changes:
        if isinstance(change, ByHand):
            return change
    return tuple(edit for change in changes if not isinstance(change, ByHand) for edit in change)
