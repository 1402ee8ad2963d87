"""Local copies of repositories and charts that a source fetches: `--repo URL=PATH`, `--chart NAME=PATH`."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

from seatrial.model.errors import CannotContinue
from seatrial.sources import disk
from seatrial.sources.files import project_of
from seatrial.sources.git import remotes


class Repos(Struct, frozen=True):
    """Local checkouts of repositories: `--repo URL=PATH`, and that of the input."""

    paths: dict[str, str] = {}
    remotes: dict[str, str] = {}
    """The checkout of the input, by the URLs of its remotes."""

    def find(self, url: str) -> Path | None:
        found = self.paths.get(plain_url(url)) or self.remotes.get(plain_url(url))
        return Path(found) if found is not None else None

    def is_checkout(self, url: str) -> bool:
        """Whether a repository is found only because it is a remote of the input's checkout."""
        return plain_url(url) in self.remotes and plain_url(url) not in self.paths


class SourceNotFound(Exception):
    """A source that is not on disk, so its objects are unknown. Says why, and how to get it."""


def repos_of(flags: Iterable[str], beside: str = "") -> Repos:
    """The values of `--repo`, and the remotes of the checkout that contains `beside`."""
    found = {}
    for flag in flags:
        url, equals, path = flag.rpartition("=")
        if not equals or not url or not path:
            raise CannotContinue(f"--repo {flag}: needs URL=PATH, the local checkout of a repository")
        if not disk.exists(Path(path)):
            raise CannotContinue(f"--repo {flag}: no such file or folder: {path}")
        found[plain_url(url)] = path
    return Repos(found, _remotes_around(beside) if beside else {})


def _remotes_around(path: str) -> dict[str, str]:
    top = project_of(Path(path) if disk.is_dir(Path(path)) else Path(path).parent)
    here = os.path.relpath(top) if Path.cwd().is_relative_to(top) or top.is_relative_to(Path.cwd()) else str(top)
    return {plain_url(url): here for url in remotes(top)}


def charts_given(flags: Iterable[str]) -> dict[str, str]:
    """The values of `--chart NAME=PATH`."""
    given = {}
    for flag in flags:
        name, _, path = flag.partition("=")
        if not name or not path:
            raise CannotContinue(f"--chart {flag}: needs NAME=PATH, the local copy of a chart")
        if not disk.exists(Path(path)):
            raise CannotContinue(f"--chart {flag}: no such file or folder: {path}")
        given[name] = path
    return given


def plain_url(url: str) -> str:
    """A repository's URL as Argo CD compares it: `git.NormalizeGitURL`."""
    text = url.strip().lower().removesuffix("/").removesuffix(".git")
    for scheme in ("https://", "http://", "ssh://", "oci://"):
        text = text.removeprefix(scheme)
    return text.partition("@")[2].replace(":", "/", 1) if "@" in text.partition("/")[0] else text


def chart_in(root: Path, chart: str, version: str) -> Path:
    """A chart in a local Helm repository: a folder or an archive with its name."""
    for path in (root / chart, root / f"{chart}-{version}.tgz", root / f"{chart}-{version.removeprefix('v')}.tgz"):
        if disk.exists(path):
            return path
    if disk.is_file(root) or disk.is_file(root / "Chart.yaml"):
        return root
    raise CannotContinue(f"error fetching chart: failed to fetch chart: chart {chart} version {version} not found")
