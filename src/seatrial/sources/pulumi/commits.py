"""A Pulumi program at a commit: the files of the commit in a temporary folder, with the packages of the working tree.

Installed packages are not in a commit: those of the working tree are used, except packages that the commit contains.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from seatrial.model.errors import CannotContinue, NothingToCheck
from seatrial.model.program import Registration
from seatrial.model.release import Release, Resource
from seatrial.model.resource import Place
from seatrial.sandbox import folders
from seatrial.sources import git
from seatrial.sources.places import origin, place_of
from seatrial.sources.pulumi.packages import PACKAGES, home_of, packages_in

WANTED = (
    *("package.json", "package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml", "bun.lock"),
    *("requirements.txt", "pyproject.toml", "poetry.lock", "uv.lock", "Pipfile.lock"),
)
"""The files that declare the packages of a program."""


class Checkout(Struct, frozen=True):
    """A commit in a temporary folder."""

    tree: git.Tree
    root: Path
    own: str
    """The path of the program in it."""
    packages: tuple[Path, ...] = ()
    """Where the packages are installed that it uses."""

    @property
    def path(self) -> str:
        return os.path.normpath(self.root / self.own)

    @property
    def today(self) -> Path:
        """The same folder in the working tree."""
        return Path(self.tree.top, self.own)

    def named(self, text: str) -> str:
        """Text with `git:REF:path` instead of the temporary folder."""
        return text.replace(f"{self.root}/", self.tree.shown("")).replace(str(self.root), self.tree.shown("")[:-1])


@contextmanager
def checked_out(source: str, beside: str) -> Iterator[Checkout]:
    """Write `git:REF` to a temporary folder; errors inside the block name the commit instead of that folder."""
    tree, own = git.located(source, beside)
    with folders.temporary() as folder:
        root = Path(folder).resolve()
        git.export(tree, root)
        (root / ".git").touch()  # Marks the project root, the limit for symlinks.
        found = Checkout(tree, root, own, tuple(sorted(set(_borrowed(Path(tree.top).resolve(), root)))))
        try:
            if not Path(found.path).exists():
                where = f"{found.path}: does not exist at {tree.ref}"
                raise CannotContinue(f"{where}; if the program was in another folder, use git:{tree.ref}:FOLDER")
            yield found
        except (CannotContinue, NothingToCheck) as why:
            why.args = (found.named(str(why)),)
            raise


def as_committed(release: Release, checkout: Checkout) -> Release:
    """The release with places in the commit, and with paths in values as in the working tree."""
    assert release.program is not None
    program = release.program
    committed = replace(
        program,
        registrations=tuple(_registration(one, checkout) for one in program.registrations),
        unknown=tuple(map(checkout.named, program.unknown)),
        warnings=tuple(checkout.named(words) for words in (*program.warnings, *_other_packages(checkout))),
        absent=tuple(map(checkout.named, program.absent)),
    )
    return replace(release, resources=tuple(_resource(one, checkout) for one in release.resources), program=committed)


def _borrowed(today: Path, root: Path) -> Iterator[Path]:
    """Link the packages of the working tree into the commit, and yield where they are installed.

    In a monorepo npm and pnpm link local packages to their source folders: those of the commit are used.
    """
    for folder, inside, _ in os.walk(root):
        if PACKAGES in inside:
            inside.remove(PACKAGES)
            continue
        installed = today / Path(folder).relative_to(root) / PACKAGES
        for package in packages_in(installed):
            real, home = package.resolve(), home_of(package)
            if home == real and real.is_relative_to(today):
                real = root / real.relative_to(today)
            else:
                yield home
            if real.exists():
                link = Path(folder, PACKAGES, package.relative_to(installed))
                link.parent.mkdir(parents=True, exist_ok=True)
                link.symlink_to(real)


def _other_packages(checkout: Checkout) -> Iterator[str]:
    """A warning for each package file that differs from that of the working tree."""
    own = Path(checkout.path).relative_to(checkout.root)
    for folder in (own, *own.parents):
        for name in WANTED:
            then, now = (Path(top, folder, name) for top in (checkout.root, checkout.tree.top))
            if then.is_file() and (not now.is_file() or then.read_bytes() != now.read_bytes()):
                yield f"{then} differs from the working tree; the program was run with the currently installed packages"


def _registration(one: Registration, checkout: Checkout) -> Registration:
    return replace(
        one,
        place=_place(one.place, checkout) if one.place else None,
        inputs=_worked_on(one.inputs, checkout),
        object=_worked_on(one.object, checkout),
        contents=_worked_on(one.contents, checkout),
        definitions=_worked_on(one.definitions, checkout),
    )


def _resource(one: Resource, checkout: Checkout) -> Resource:
    then = origin(checkout.named(one.file), lambda path: _place(place_of(one.place(*path)), checkout))
    return Resource(one.ref, _worked_on(one.body, checkout), then)


def _place(place: Place, checkout: Checkout) -> Place:
    return replace(place, file=checkout.named(place.file))


def _worked_on(value: Any, checkout: Checkout) -> Any:
    """A value with paths in the working tree instead of the temporary folder, so that they are no difference."""
    match value:
        case str():
            return value.replace(str(checkout.root), checkout.tree.top)
        case dict():
            return {key: _worked_on(one, checkout) for key, one in value.items()}
        case list():
            return [_worked_on(one, checkout) for one in value]
        case tuple():
            return tuple(_worked_on(one, checkout) for one in value)
    return value
