"""What came of each story with one Helm, kept in the user's cache, one file per story. Runs nothing.

Results of another tree do not count: a change of the product, of the lab or of the story makes them worthless.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import msgspec
from msgspec import Struct

from lab import ROOT
from lab.outcomes import Differs, Ran, differences
from lab.stories import FOLDER, names


class Played(Struct, frozen=True):
    """One plan on both clusters, or the reason why it was not played."""

    story: str
    number: int
    case: str
    ours: tuple[Ran, ...] = ()
    real: tuple[Ran, ...] = ()
    skipped: str = ""

    @property
    def differences(self) -> list[Differs]:
        return list(differences(self.ours, self.real))


class StoryResult(Struct, frozen=True):
    """All plans of one story."""

    tree: str
    only_first: bool
    plans: tuple[Played, ...]


class Run(Struct, frozen=True):
    """All plans with one Helm."""

    helm: str
    plans: tuple[Played, ...]
    left: int
    """How many stories have no result."""
    only_first: int
    """Of how many stories only the first trial was played."""


class Results:
    """The results with one Helm. Labs side by side share them."""

    def __init__(self, cache_folder: Path, helm: str) -> None:
        self._helm = helm
        self._folder = cache_folder / "results" / helm.translate(str.maketrans(" ", "-", "()"))
        self._folder.mkdir(parents=True, exist_ok=True)

    def keep(self, story: str, plans: Iterable[Played], *, only_first: bool) -> None:
        data = msgspec.json.encode(StoryResult(_tree_of(story), only_first, tuple(plans)))
        fresh = self._folder / f"{story}.new"
        fresh.write_bytes(data)
        fresh.replace(self._folder / f"{story}.json")

    def is_kept(self, story: str, *, only_first: bool) -> bool:
        found = self._of(story)
        return found is not None and (only_first or not found.only_first)

    def run(self, only: str) -> Run:
        """What is known by now of the stories whose name contains `only`."""
        asked = [name for name in names() if only in name]
        found = [one for name in asked if (one := self._of(name)) is not None]
        plans = tuple(plan for one in found for plan in one.plans)
        return Run(self._helm, plans, len(asked) - len(found), sum(one.only_first for one in found))

    def _of(self, story: str) -> StoryResult | None:
        file = self._folder / f"{story}.json"
        found = msgspec.json.decode(file.read_bytes(), type=StoryResult) if file.exists() else None
        return found if found is not None and found.tree == _tree_of(story) else None


def _tree_of(story: str) -> str:
    return hashlib.sha256(_code().encode() + (FOLDER / f"{story}.md").read_bytes()).hexdigest()


@cache
def _code() -> str:
    """The same as long as neither the product nor the lab changes."""
    found = hashlib.sha256()
    for path in sorted([*(ROOT / "src").rglob("*"), *(ROOT / "lab").glob("*.py")]):
        if path.is_file() and path.suffix != ".pyc":
            found.update(f"{path.relative_to(ROOT)}\n".encode() + path.read_bytes())
    return found.hexdigest()
