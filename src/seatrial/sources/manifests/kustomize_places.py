"""Where the objects of a kustomization are written: the resource file that has each of them.

Lines in its own folder are exact. Lines of bases elsewhere are only shown: other kustomizations may use them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from seatrial.model.errors import CannotContinue
from seatrial.model.release import Resource
from seatrial.model.resource import Place, dig, group_of, listed, name_of
from seatrial.sources import disk
from seatrial.sources.files import read_text, shown
from seatrial.sources.manifests.kustomize_bases import FILES, FOLDERS_MAX
from seatrial.sources.places import Locate, origin
from seatrial.text.yamlfile import Document, documents

NAMED = ("resources", "bases", "components")
_DOING = "find the objects of the kustomization"


def placed(resources: Iterable[Resource], folder: Path, file: str) -> Iterator[Resource]:
    """The resources with the places of their fields; of fields that no resource file has, that of the kustomization."""

    @cache
    def written() -> list[Document]:
        return list(_written(folder, set()))

    def locator(one: Resource) -> Locate:
        return lambda path: _place(one, path, written(), folder, file)

    for one in resources:
        yield Resource(one.ref, one.body, origin(file, locator(one)))


def _place(one: Resource, path: tuple[str | int, ...], written: list[Document], folder: Path, file: str) -> Place:
    found = _source(one, written)
    if found is None or found.entry(*path) is None:
        return Place(file, 1, "file")
    place = found.place(*path)
    own = disk.resolved(Path(place.file)).is_relative_to(disk.resolved(folder))
    value = dig(found.body, *path)
    same = isinstance(value, (dict, list)) or value == dig(one.body, *path)
    return place if own and same else Place(place.file, place.line, "near")


def _source(one: Resource, written: list[Document]) -> Document | None:
    """The document of an object: by its name, or by the only name that a prefix or suffix may have changed."""
    alike = [
        d for d in written if (group_of(str(d.body["apiVersion"])), d.body["kind"]) == (one.ref.group, one.ref.kind)
    ]
    named = [d for d in alike if name_of(d.body) == one.ref.name]
    longer = [d for d in alike if name_of(d.body) and name_of(d.body) in one.ref.name]
    return named[0] if len(named) == 1 else longer[0] if not named and len(longer) == 1 else None


def _written(folder: Path, seen: set[Path]) -> Iterator[Document]:
    """The documents of all resource files of a kustomization and of its bases."""
    if disk.resolved(folder) in seen or len(seen) > FOLDERS_MAX:
        return
    seen.add(disk.resolved(folder))
    file = next((folder / name for name in FILES if disk.is_file(folder / name)), None)
    body = next(iter(_documents(file)), None) if file else None
    for entry in (str(entry) for key in NAMED for entry in (listed(body.body, key) if body else ())):
        path = folder / entry
        if disk.is_dir(path):
            yield from _written(path, seen)
        elif disk.is_file(path):
            yield from (one for one in _documents(path) if one.body.get("kind") and one.body.get("apiVersion"))


def _documents(file: Path) -> list[Document]:
    try:
        found = list(documents(read_text(shown(str(file)), _DOING)))
    except CannotContinue:
        return []  # kustomize says what is wrong with it.
    return [one for one in found if isinstance(one.body, dict)]
