"""The commands that fetch what a source names and what is not on disk. Fetches nothing itself."""

from __future__ import annotations

import shlex

OCI = "oci://"


def chart_command(chart: str, repo: str = "", version: str = "") -> str:
    """The `helm pull` that gets a chart as it is pinned: `helm pull shop --repo URL --version 1.2.3 --untar`."""
    if repo.startswith(OCI):
        chart, repo = f"{repo.rstrip('/')}/{chart}" if chart not in repo.split("/") else repo, ""
    pinned = (*(("--repo", repo) if repo else ()), *(("--version", version) if version else ()))
    return shlex.join(("helm", "pull", chart, *pinned, "--untar"))


def get_chart(chart: str, repo: str = "", version: str = "") -> str:
    """How to rehearse a chart that is not on disk, for `--chart`."""
    name = chart.rstrip("/").rpartition("/")[2]
    return f"To rehearse it: {chart_command(chart, repo, version)}, then add --chart {name}={name}"


def get_repo(url: str) -> str:
    """How to rehearse a git repository that is not on disk, for `--repo`."""
    folder = url.rstrip("/").removesuffix(".git").rpartition("/")[2] or "PATH"
    return f"To rehearse it: git clone {shlex.quote(url)} {folder}, then add --repo {url}={folder}"
