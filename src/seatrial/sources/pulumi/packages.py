"""Installed node packages and their real folders. Runs nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from seatrial.model.resource import Body

PACKAGES = "node_modules"


def looked_through(folder: Path) -> Iterator[Path]:
    """The folders in which node looks for packages, from a folder upwards."""
    return (path for one in (folder, *folder.parents) if (path := one / PACKAGES).is_dir())


def packages_in(installed: Path) -> Iterator[Path]:
    """Every package, including those of a scope such as `@pulumi`."""
    for entry in sorted(installed.iterdir()) if installed.is_dir() else ():
        if entry.name.startswith("@") and entry.is_dir():
            yield from sorted(entry.iterdir())
        elif not entry.name.startswith("."):
            yield entry


def workspace_of(folder: Path) -> Path:
    """The root of the workspace that contains a folder; without a workspace, the folder itself."""
    for above in (folder, *folder.parents):
        if (above / "pnpm-workspace.yaml").is_file() or "workspaces" in described(above):
            return above
    return folder


def described(folder: Path) -> Body:
    """The package.json of a folder; empty if it is missing or broken, as in the SDK."""
    try:
        body = json.loads((folder / "package.json").read_bytes())
    except (OSError, ValueError):
        return {}
    return body if isinstance(body, dict) else {}


def home_of(package: Path) -> Path:
    """The node_modules folder that contains a package; for a linked package, the package itself."""
    real = package.resolve()
    return Path(*real.parts[: real.parts.index(PACKAGES) + 1]) if PACKAGES in real.parts else real
