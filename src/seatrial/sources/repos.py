"""Local copies of repositories and charts that a source fetches: `--repo URL=PATH`, `--chart NAME=PATH`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

from seatrial.model.errors import CannotContinue


class Repos(Struct, frozen=True):
    """Local checkouts of repositories: `--repo URL=PATH`."""

    paths: dict[str, str] = {}

    def find(self, url: str) -> Path | None:
        found = self.paths.get(plain_url(url))
        return Path(found) if found is not None else None


class SourceNotFound(Exception):
    """A source that is not on disk, so its objects are unknown."""


def repos_of(flags: Iterable[str]) -> Repos:
    """The values of `--repo`."""
    found = {}
    for flag in flags:
        url, equals, path = flag.rpartition("=")
        if not equals or not url or not path:
            raise CannotContinue(f"--repo {flag}: needs URL=PATH, the local checkout of a repository")
        if not Path(path).exists():
            raise CannotContinue(f"--repo {flag}: no such file or folder: {path}")
        found[plain_url(url)] = path
    return Repos(found)


def charts_given(flags: Iterable[str]) -> dict[str, str]:
    """The values of `--chart NAME=PATH`."""
    given = {}
    for flag in flags:
        name, _, path = flag.partition("=")
        if not name or not path:
            raise CannotContinue(f"--chart {flag}: needs NAME=PATH, the local copy of a chart")
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
        if path.exists():
            return path
    if root.is_file() or (root / "Chart.yaml").is_file():
        return root
    raise CannotContinue(f"error fetching chart: failed to fetch chart: chart {chart} version {version} not found")
