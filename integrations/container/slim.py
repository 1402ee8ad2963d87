"""Removes what seatrial does not need from the packages that it is installed with: python slim.py SITE_PACKAGES.

Wheels have no links, so that of Helm's library contains one file three times. Of the schemas of Kubernetes, seatrial
reads the definitions of each version alone.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

LIBRARIES = "helm_python/lib"
SCHEMAS = "kubernetes_validate/kubernetes-json-schema"
DEFINITIONS = "_definitions.json"
STRICT = "-strict"


def main(folder: Path) -> int:
    """Returns how many bytes are gone."""
    gone = 0
    for path in (*_copies(folder / LIBRARIES), *_schemas(folder / SCHEMAS)):
        gone += path.stat().st_size
        path.unlink()
    return gone


def _copies(folder: Path) -> Iterator[Path]:
    """All but the one with the longest name, which is the one that is loaded: it carries the whole version."""
    found = sorted(folder.glob("libhelm_c*"), key=lambda path: len(path.name))
    yield from (path for path in found[:-1] if path.stat().st_size == found[-1].stat().st_size)


def _schemas(folder: Path) -> Iterator[Path]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    yield from (path for path in files if path.name != DEFINITIONS or path.parent.name.endswith(STRICT))


if __name__ == "__main__":
    sys.stdout.write(f"{main(Path(sys.argv[1])) // 1_000_000} MB removed\n")
