"""Where things come from: objects by what they lead to, workloads by the images they run. Looks nothing up itself."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import TypeVar

from seatrial.kinds import Kind
from seatrial.kinds.images import running_images
from seatrial.resource import Body, Ref

Key = TypeVar("Key", bound=Hashable)


class Origins:
    """Kept up to date with every change of the store."""

    def __init__(self) -> None:
        self.makers: dict[Ref, set[Ref]] = {}
        """By an object: those that lead to it, while whoever acts on them runs."""
        self.runners: dict[str, set[Ref]] = {}
        """By the name of an image: the workloads that run it."""

    def changed(self, ref: Ref, before: Body | None, after: Body | None, kind: Kind | None) -> None:
        if kind is not None:
            _note(self.makers, ref, before, after, kind.produces)
        _note(self.runners, ref, before, after, running_images)


def _note(
    index: dict[Key, set[Ref]],
    ref: Ref,
    before: Body | None,
    after: Body | None,
    keys: Callable[[Body], Iterator[Key]],
) -> None:
    had = set(keys(before)) if before is not None else set()
    has = set(keys(after)) if after is not None else set()
    for key in had - has:
        index[key].discard(ref)
    for key in has - had:
        index.setdefault(key, set()).add(ref)
