"""What a kustomization names, looked at before a tool builds it: nothing remote, and nothing outside of the project."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from seatrial.model import lazy_re
from seatrial.model.errors import CannotContinue
from seatrial.sources import disk
from seatrial.sources.files import read_text, shown, within
from seatrial.text.yamlfile import BrokenYaml, documents

FILES = ("kustomization.yaml", "kustomization.yml", "Kustomization")
BASES = ("resources", "bases", "components", "crds", "configurations")
PLUGINS = ("generators", "transformers", "validators")
"""Files with a configuration of their own, which may name further files; or such a configuration as text."""
FOLDERS_MAX = 2000
_REMOTE = lazy_re.compile(
    r"^(?:[\w.-]+=)?(?:[a-z][a-z0-9+.-]*:(?://|:)|gh:|[^/@\s]+@[^/\s]+:|(?:www\.)?github\.com[:/])"
    r"|\?(?:.*&)?(?:ref|version|timeout|submodules)=|\.git(?:[/?]|$)|/_git/",
    re.I,
)
"""What kustomize downloads or clones (`NewRepoSpecFromURL`, `IsRemoteFile`)."""
_DOING = "read the kustomization"


def refuse_foreign(folder: Path, roots: Iterable[Path], named: str) -> set[Path]:
    """Refuse a kustomization that needs the network or files outside of the roots, in itself or in its bases.

    Returns the folders of all of them.
    """
    roots, left, seen = tuple(roots), [folder], set[Path]()
    while left:
        here = left.pop()
        if (real := disk.resolved(here)) in seen:
            continue
        seen.add(real)
        if len(seen) > FOLDERS_MAX:
            raise CannotContinue(f"{named}: {_DOING}: more than {FOLDERS_MAX} bases")
        file = next((here / name for name in FILES if disk.is_file(here / name)), None)
        if file is None:
            continue
        shown_as = f"{named}/{file.name}" if here == folder else shown(str(file))
        for key, entry in _named(_body(within(file, *roots))):
            if not _exists(here / entry):
                _refuse_remote({key: entry}, shown_as)
            if key not in (*BASES, *PLUGINS) or not _exists(here / entry):
                continue  # kustomize itself keeps other files inside of the folder.
            path = within(here / entry, *roots, named=f"{shown_as}: {key}: {entry}")
            if disk.is_dir(path):
                left.append(path)
            elif key in PLUGINS:
                _refuse_remote(_body(path), shown(str(path)))
    return seen


def _refuse_remote(body: Any, named: str) -> None:
    for key, entry in _named(body):
        if _REMOTE.search(entry):
            raise CannotContinue(
                f"{named}: {key}: {entry} is remote, and seatrial fetches nothing; copy it to the disk"
            )


def _exists(path: Path) -> bool:
    try:
        return disk.exists(path)
    except (OSError, ValueError):  # Not a valid name.
        return False


def _body(file: Path) -> Any:
    try:
        return [document.body for document in documents(read_text(str(file), _DOING))]
    except BrokenYaml:
        return None  # kustomize says what is wrong with it.


def _named(body: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """Every text in a configuration that could name a file, with the last key before it."""
    if isinstance(body, dict):
        for name, value in body.items():
            yield from _named(value, str(name))
    elif isinstance(body, list):
        for value in body:
            yield from _named(value, key)
    elif isinstance(body, str) and key in (*BASES, *PLUGINS, *_MORE) and "\n" not in body and len(body) < 4096:
        yield key, body


_MORE = ("path", "paths", "files", "envs", "env", "patchesStrategicMerge", "valuesFile", "additionalValuesFiles")
"""Fields of patches, generators, replacements, charts and schemas that name a file."""
