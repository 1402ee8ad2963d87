"""seatrial.yaml: found beside the input or above it, and read strictly. Knows nothing of rules."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import msgspec
from msgspec import Struct

from seatrial.model.configuration import Configuration
from seatrial.model.errors import CannotContinue
from seatrial.model.resource import Place
from seatrial.sources import disk
from seatrial.sources.files import STDIN, read_text, within
from seatrial.sources.typed import converted
from seatrial.text.yamlfile import Document, documents

NAME = "seatrial.yaml"


class Configured(Struct, frozen=True):
    """A configuration and its file; empty where there is none."""

    given: Configuration = Configuration()
    file: str = ""
    """As the user would type it."""
    document: Document | None = None

    def place(self, *path: str | int) -> Place:
        return self.document.place(*path) if self.document else Place(self.file, 1)

    @property
    def folder(self) -> Path:
        return disk.resolved(Path(self.file).parent)


NONE = Configured()


def configuration_of(inputs: Iterable[str]) -> Configured:
    """The configuration of all inputs, which must have the same one."""
    files = dict.fromkeys(_found(given) for given in inputs)
    if len(files) > 1:
        names = ", ".join(os.path.relpath(file) if file else "none" for file in files)
        raise CannotContinue(f"the inputs have different configuration files ({names}); check them one by one")
    file = next(iter(files), None)
    return _read(file) if file else NONE


def _found(given: str) -> Path | None:
    """The nearest seatrial.yaml, up to the root of the git repository or of the file system."""
    start = Path(os.curdir if given == STDIN else given).absolute()
    folder = start if disk.is_dir(start) else start.parent
    for above in (folder, *folder.parents):
        if disk.is_file(above / NAME):
            return above / NAME
        if disk.exists(above / ".git"):
            return None
    return None


def _read(path: Path) -> Configured:
    file = os.path.relpath(path)
    text = read_text(str(within(path, path.parent, named=file)), "read the configuration")
    found = next(documents(msgspec.structs.replace(text, path=file)), None)
    if found is None:
        return Configured(file=file)
    given = converted(found, Configuration)
    configured = Configured(given, file, found)
    for number, name in enumerate(given.assume):
        within(configured.folder / name, configured.folder, named=f"{configured.place('assume', number)}: {name}")
    return configured
