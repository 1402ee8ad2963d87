"""The version of the Kubernetes provider that a program is locked to, from its lock files. Runs nothing.

From 4.0 to 4.28 the provider creates objects by server-side apply, so it takes over an object that exists; from 4.29 on
it refuses (pulumi-kubernetes#4278).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from msgspec import Struct

from seatrial.model import lazy_re

NODE, PYTHON = "@pulumi/kubernetes", r"pulumi[-_]kubernetes"
UPSERTS = (4, 0), (4, 29)
"""The releases, from and before, that take over existing objects."""
_VERSION = r"v?(\d+\.\d+\.\d+)"
_YARN = lazy_re.compile(rf'^"?{re.escape(NODE)}@[^\n]*:\n\s+"?version"?:?\s+"?{_VERSION}', re.M)
_PNPM = lazy_re.compile(rf"^\s+['\"]?/?{re.escape(NODE)}[@/]{_VERSION}", re.M)
_REQUIREMENT = lazy_re.compile(rf"^\s*{PYTHON}(?:\[.*\])?\s*==\s*{_VERSION}", re.M | re.I)
_TOML = lazy_re.compile(rf'name = "{PYTHON}"\nversion = "{_VERSION}"', re.I)
_GO = lazy_re.compile(rf"github\.com/pulumi/pulumi-kubernetes/sdk/v\d+ {_VERSION}")


class LockedProvider(Struct, frozen=True):
    version: str
    file: Path

    @property
    def upserts(self) -> bool:
        return upserts(self.version)


def upserts(version: str) -> bool:
    """Whether a release of the provider takes over existing objects."""
    major, minor, *_ = map(int, version.split("."))
    return UPSERTS[0] <= (major, minor) < UPSERTS[1]


def locked_provider(folder: Path, root: Path) -> LockedProvider | None:
    """The provider in the lock files of a folder, or of the nearest folder above it that has one."""
    inside = [above for above in (folder, *folder.parents) if above == root or root in above.parents]
    return next((found for above in inside or [folder] for found in _locks(above)), None)


def _locks(folder: Path) -> Iterator[LockedProvider]:
    for name, read in LOCKS.items():
        file = folder / name
        if file.is_file() and (version := read(file.read_text(encoding="utf-8", errors="replace"))):
            yield LockedProvider(version, file)


def _npm(text: str) -> str:
    try:
        body = json.loads(text)
    except ValueError:
        return ""
    packages, dependencies = body.get("packages") or {}, body.get("dependencies") or {}
    entry = packages.get(f"node_modules/{NODE}") or dependencies.get(NODE) or {}
    return str(entry.get("version") or "")


def _first(pattern: re.Pattern[str]) -> Callable[[str], str]:
    return lambda text: found[1] if (found := pattern.search(text)) else ""


LOCKS: dict[str, Callable[[str], str]] = {
    "package-lock.json": _npm,
    "yarn.lock": _first(_YARN),
    "pnpm-lock.yaml": _first(_PNPM),
    "poetry.lock": _first(_TOML),
    "uv.lock": _first(_TOML),
    "requirements.txt": _first(_REQUIREMENT),
    "go.mod": _first(_GO),
}
"""How each lock file is read."""
