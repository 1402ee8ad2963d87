"""A Pulumi program as it was at a commit: all files of that time in a folder of its own, and what is installed today.

Packages are in no commit: those of the working tree are used, but for packages that are themselves in the commit.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from seatrial.model.errors import CannotContinue, NothingToCheck
from seatrial.model.program import Program, Registration
from seatrial.model.release import Release, Resource
from seatrial.model.resource import Place
from seatrial.sources import git
from seatrial.sources.places import origin, place_of
from seatrial.sources.pulumi.packages import PACKAGES, home_of, packages_in

WANTED = (
    *("package.json", "package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml", "bun.lock"),
    *("requirements.txt", "pyproject.toml", "poetry.lock", "uv.lock", "Pipfile.lock"),
)
"""The files that say which packages a program wants."""


class Checkout(Struct, frozen=True):
    """A commit on disk, for as long as a program of it runs."""

    tree: git.Tree
    root: Path
    own: str
    """The path of the program in it."""
    packages: tuple[Path, ...] = ()
    """Where those are installed that it uses."""

    @property
    def path(self) -> str:
        return os.path.normpath(self.root / self.own)

    @property
    def today(self) -> Path:
        """The same folder in the working tree."""
        return Path(self.tree.top, self.own)

    def told(self, text: str) -> str:
        """What is said of this folder, said of the commit: nobody else knows where it lay."""
        return text.replace(f"{self.root}/", self.tree.shown("")).replace(str(self.root), self.tree.shown("")[:-1])


@contextmanager
def checked_out(source: str, beside: str) -> Iterator[Checkout]:
    """The commit that `git:REF` names, as files; whatever is complained of meanwhile is said of the commit."""
    tree, own = git.located(source, beside)
    with tempfile.TemporaryDirectory(prefix="seatrial-", ignore_cleanup_errors=True) as folder:
        root = Path(folder).resolve()
        git.export(tree, root)
        (root / ".git").touch()  # It is one project as far as links may lead.
        found = Checkout(tree, root, own, tuple(sorted(set(_borrowed(Path(tree.top).resolve(), root)))))
        try:
            if not Path(found.path).exists():
                where = f"{found.path}: it was not there at {tree.ref}"
                raise CannotContinue(f"{where}; if the program was elsewhere then: git:{tree.ref}:FOLDER")
            yield found
        except (CannotContinue, NothingToCheck) as why:
            why.args = (found.told(str(why)),)
            raise


def as_committed(release: Release, checkout: Checkout) -> Release:
    """A release whose places are those of the commit, and whose paths are those of the working tree."""
    assert release.program is not None
    program = release.program
    told = Program(
        program.project,
        tuple(_registration(one, checkout) for one in program.registrations),
        program.stack,
        tuple(map(checkout.told, program.unknown)),
        tuple(checkout.told(words) for words in (*program.warnings, *_other_packages(checkout))),
        program.recorded,
    )
    return replace(release, resources=tuple(_resource(one, checkout) for one in release.resources), program=told)


def _borrowed(today: Path, root: Path) -> Iterator[Path]:
    """Link what is installed in the working tree, and say where that is.

    In a monorepo npm and pnpm link packages to the folders that they are written in: those are of the commit.
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
    """What is to be said where the program wanted other packages then."""
    own = Path(checkout.path).relative_to(checkout.root)
    for folder in (own, *own.parents):
        for name in WANTED:
            then, now = (Path(top, folder, name) for top in (checkout.root, checkout.tree.top))
            if then.is_file() and (not now.is_file() or then.read_bytes() != now.read_bytes()):
                yield f"{then} is not that of today; the program was run with the packages that are installed today"


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
    then = origin(checkout.told(one.file), lambda path: _place(place_of(one.place(*path)), checkout))
    return Resource(one.ref, _worked_on(one.body, checkout), then)


def _place(place: Place, checkout: Checkout) -> Place:
    return replace(place, file=checkout.told(place.file))


def _worked_on(value: Any, checkout: Checkout) -> Any:
    """A value as the program would have given it where people work: a path that it joins is no difference."""
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
