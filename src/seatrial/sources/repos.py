"""Folders and charts on disk that stand for what a source fetches: `--repo URL=PATH`, `--chart NAME=PATH`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

from seatrial.model.errors import CannotContinue


class Repos(Struct, frozen=True):
    """Local folders that stand for repositories: `--repo URL=PATH`."""

    paths: dict[str, str] = {}

    def find(self, url: str) -> Path | None:
        found = self.paths.get(plain_url(url))
        return Path(found) if found is not None else None


class NotAtHand(Exception):
    """A source that is not on disk: what it deploys is not known."""


def repos_of(flags: Iterable[str]) -> Repos:
    """What `--repo` was given."""
    found = {}
    for flag in flags:
        url, equals, path = flag.rpartition("=")
        if not equals or not url or not path:
            raise CannotContinue(f"--repo {flag}: takes URL=PATH, the folder that stands for a repository")
        if not Path(path).exists():
            raise CannotContinue(f"--repo {flag}: there is no {path}")
        found[plain_url(url)] = path
    return Repos(found)


def charts_given(flags: Iterable[str]) -> dict[str, str]:
    """Where charts are, as `--chart NAME=PATH` says."""
    given = {}
    for flag in flags:
        name, _, path = flag.partition("=")
        if not name or not path:
            raise CannotContinue(f"--chart {flag}: say which chart is where: --chart NAME=PATH")
        given[name] = path
    return given


def plain_url(url: str) -> str:
    """A repository's URL as Argo CD compares it: `git.NormalizeGitURL`."""
    text = url.strip().lower().removesuffix("/").removesuffix(".git")
    for scheme in ("https://", "http://", "ssh://", "oci://"):
        text = text.removeprefix(scheme)
    return text.partition("@")[2].replace(":", "/", 1) if "@" in text.partition("/")[0] else text


def chart_in(root: Path, chart: str, version: str) -> Path:
    """A chart of a Helm repository: a folder or an archive of its name."""
    for path in (root / chart, root / f"{chart}-{version}.tgz", root / f"{chart}-{version.removeprefix('v')}.tgz"):
        if path.exists():
            return path
    if root.is_file() or (root / "Chart.yaml").is_file():
        return root
    raise CannotContinue(f"error fetching chart: failed to fetch chart: chart {chart} version {version} not found")
