"""Git checkouts and commits for tests."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

ME = {
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@example",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@example",
}


def git(folder: Path, *arguments: str) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    subprocess.run(["git", *arguments], cwd=folder, env={**environment, **ME}, check=True)


def commit(folder: Path, tag: str) -> None:
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", tag)
    git(folder, "tag", tag)
