"""Whether everything that was read is still as it was."""

from __future__ import annotations

from collections.abc import MutableMapping
from pathlib import Path

from seatrial.model.errors import CannotContinue
from seatrial.sources import disk, git
from seatrial.sources.files import project_of

Commits = MutableMapping[tuple[str, str], str]
"""The commits of names in checkouts that were asked for already: many charts of one checkout have the same one."""


def unchanged(reads: disk.Reads, commits: Commits) -> bool:
    """Whether every question that was asked would have the same answer now."""
    return all(_answer(question, about, commits) == answer for (question, about), answer in reads.items())


def _answer(question: str, about: str, commits: Commits) -> str | None:
    if question == git.COMMIT:
        return _commit(about, commits)
    return disk.ANSWERS[question](about) if question in disk.ANSWERS else None


def _commit(about: str, commits: Commits) -> str:
    folder, _, ref = about.partition("\0")
    top = str(project_of(Path(folder)))
    if (top, ref) not in commits:
        try:
            tree, _ = git.located(f"{git.PREFIX}{ref}", top)
        except CannotContinue:
            return ""
        commits[top, ref] = f"{tree.top}\0{tree.commit}"
    return commits[top, ref]
