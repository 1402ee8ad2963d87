"""Packages that are installed for node: which there are, and where they really lie. Runs nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from seatrial.model.resource import Body

PACKAGES = "node_modules"


def looked_through(folder: Path) -> Iterator[Path]:
    """Where node looks for packages, from a folder upwards."""
    return (path for one in (folder, *folder.parents) if (path := one / PACKAGES).is_dir())


def packages_in(installed: Path) -> Iterator[Path]:
    """Every package, also those of a scope such as `@pulumi`."""
    for entry in sorted(installed.iterdir()) if installed.is_dir() else ():
        if entry.name.startswith("@") and entry.is_dir():
            yield from sorted(entry.iterdir())
        elif not entry.name.startswith("."):
            yield entry


def workspace_of(folder: Path) -> Path:
    """The folder whose packages belong together with this one; where there is none, this one."""
    for above in (folder, *folder.parents):
        if (above / "pnpm-workspace.yaml").is_file() or "workspaces" in described(above):
            return above
    return folder


def described(folder: Path) -> Body:
    """The package.json of a folder; nothing where there is none to be understood, as the SDK takes it."""
    try:
        body = json.loads((folder / "package.json").read_bytes())
    except (OSError, ValueError):
        return {}
    return body if isinstance(body, dict) else {}


def home_of(package: Path) -> Path:
    """The folder that a package lies in with all that it was installed with; where it is only linked, itself."""
    real = package.resolve()
    return Path(*real.parts[: real.parts.index(PACKAGES) + 1]) if PACKAGES in real.parts else real
