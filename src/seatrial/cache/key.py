"""What a result depends on beside files: the options, the current folder, the environment, and seatrial itself."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import msgspec
from msgspec.structs import replace

import seatrial
from seatrial.model.options import CheckOptions
from seatrial.sources import CHART, MANIFESTS, disk

READ_BY_HELM = ("HELM_", "KUBE")
READ_BY_GIT = ("GIT_CONFIG", "GIT_DIR")
PROGRAMS = ("git", CHART.engine, MANIFESTS.engine, "kustomize")
"""Those on the PATH are mentioned in notes, or build kustomizations."""
NOT_SOURCES = ("__pycache__",)


def key_of(options: CheckOptions, beside: str) -> str:
    """The name of the check with these options; empty if its result is not kept.

    The user's binaries and programs read what cannot be listed, and a check that changes files has to look at them.
    """
    fixing = options.fixing
    binaries = (options.helm_binary, options.kubectl_binary, options.pulumi_binary, options.engine_binaries)
    if any(binaries) or options.compare_engines or options.trust:
        return ""
    if fixing is not None and fixing.least is None:
        return ""
    tried = None if fixing is None else (replace(fixing, wanted=None), beside)
    place = (str(Path.cwd()), str(Path("~").expanduser()))
    return disk.digest(msgspec.json.encode([_itself(), place, _around(), replace(options, fixing=None), tried]))


def _around() -> list[object]:
    names = (name for name in os.environ if name.startswith((*READ_BY_HELM, *READ_BY_GIT)))
    return [[(name, os.environ[name]) for name in sorted(names)], *map(_program, PROGRAMS)]


@cache
def _program(name: str) -> list[object]:
    found = shutil.which(name)
    if found is None:
        return []
    about = Path(found).stat()
    return [found, about.st_size, about.st_mtime_ns]


@cache
def _itself() -> str:
    """This version of seatrial, of Python, and of everything that is installed beside it."""
    own = sorted(_files(Path(seatrial.__file__).parent))
    beside = sorted(one.name for one in Path(msgspec.__file__).parents[1].glob("*.dist-info"))
    return disk.digest(msgspec.json.encode([seatrial.__version__, sys.version, own, beside]))


def _files(folder: Path) -> Iterator[tuple[str, int, int]]:
    """The path, the size and the time of the last change of each file: reading them all takes too long."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir():
                if entry.name not in NOT_SOURCES:
                    yield from _files(Path(entry.path))
            else:
                about = entry.stat()
                yield entry.path, about.st_size, about.st_mtime_ns
