"""Kustomizations, built by the installed kustomize or kubectl. Knows nothing of their content."""

from __future__ import annotations

import os
import shutil
import subprocess
import weakref
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from seatrial.model.errors import CannotContinue
from seatrial.model.release import Release
from seatrial.model.resource import Body, Place
from seatrial.sandbox import confined, folders
from seatrial.sandbox.client import on_path
from seatrial.sources import disk
from seatrial.sources.files import all_instead, read_text, roots_of, shown
from seatrial.sources.manifests.kustomize_bases import FILES, refuse_foreign
from seatrial.sources.manifests.kustomize_places import placed
from seatrial.sources.manifests.objects import defined_scopes, objects_in, resources
from seatrial.text.source import Text
from seatrial.text.yamlfile import BrokenYaml, documents

EXTENSIONS = (".json", ".yaml", ".yml")
TIMEOUT_SECONDS = 60
BUILDERS = (("kustomize", "build"), ("kubectl", "kustomize"))


class FolderCopies:
    """Writable copies of folders, removed together with this object."""

    def __init__(self) -> None:
        self._found: dict[Path, Path] = {}

    def of(self, folder: Path) -> Path:
        if folder not in self._found:
            home = folders.made()
            weakref.finalize(self, folders.remove, home)
            copy = Path(home, "root")
            shutil.copytree(folder, copy, ignore=_left_out, symlinks=True)
            for file, text in all_instead().items():
                if Path(file).is_relative_to(folder):
                    there = copy / Path(file).relative_to(folder)
                    there.parent.mkdir(parents=True, exist_ok=True)
                    there.write_text(text)
            self._found[folder] = copy
        return self._found[folder]


def _left_out(folder: str, names: list[str]) -> list[str]:
    """Pipes and devices, which cannot be copied, and .git."""
    entries = {name: Path(folder, name) for name in names}
    return [
        n for n, e in entries.items() if n == ".git" or not (disk.is_symlink(e) or disk.is_file(e) or disk.is_dir(e))
    ]


def is_kustomization(folder: Path) -> bool:
    return any(disk.is_file(folder / name) for name in FILES)


def build(
    folder: Path,
    name: str,
    namespace: str,
    change: Callable[[str], str] = str,
    *,
    edits: Callable[[Body], Body] | None = None,
    root: Path | None = None,
    copies: FolderCopies | None = None,
) -> Release:
    """The objects of a kustomization, after `change` of its output. Remote bases are not fetched.

    With `edits` it is built from an edited copy of its `root`; `copies` keeps that copy for the next build.
    """
    file = shown(str(_file(folder)))
    roots = (root,) if root else roots_of(folder)
    if edits is None and all_instead():
        edits, root = dict, root or _around(refuse_foreign(folder, roots, shown(str(folder))))
    output = (
        _output(folder, roots) if edits is None else _edited(folder, root or folder, edits, copies or FolderCopies())
    )
    text = Text(file, change(output))
    try:
        found = [
            one
            for document in documents(text)
            for one in objects_in(document, file, lambda document, offset: Place(file, 1, "file"))
        ]
    except BrokenYaml as broken:
        raise CannotContinue(f"{file}: read the output of kustomize: {broken.problem}") from None
    built = resources(found, namespace, defined_scopes(found))
    return Release(name, namespace, shown(str(folder)), tuple(placed(built, folder, file)))


def _around(used: Iterable[Path]) -> Path:
    """The folder that contains a kustomization and its bases."""
    return Path(os.path.commonpath(used))


def _edited(folder: Path, root: Path, edits: Callable[[Body], Body], copies: FolderCopies) -> str:
    """The output of a copy with an edited kustomization; the copy is restored afterwards."""
    there = copies.of(disk.resolved(root)) / disk.resolved(folder).relative_to(disk.resolved(root))
    file = _file(there)
    body: Body = {"resources": _beneath(there)}
    before = disk.read(file) if disk.is_file(file) else None
    if before is not None:
        text = read_text(str(file), "read the kustomization")
        body = next((document.body for document in documents(text) if document.body), {})
    file.write_bytes(msgspec.json.encode(edits(body)))
    try:
        return _output(there, (copies.of(disk.resolved(root)),), shown(str(folder)))
    finally:
        if before is None:
            file.unlink()
        else:
            file.write_bytes(before)


def _file(folder: Path) -> Path:
    """The kustomization file of a folder, existing or not."""
    return next((folder / name for name in FILES if disk.is_file(folder / name)), folder / FILES[0])


def _beneath(folder: Path, top: Path | None = None) -> list[str]:
    """The resources of a generated kustomization: all manifests below a folder, nested kustomizations as folders."""
    found: list[str] = []
    for entry in sorted(disk.entries(folder), key=lambda entry: entry.name):
        if disk.is_dir(entry) and not is_kustomization(entry):
            found += _beneath(entry, top or folder)
        elif disk.is_dir(entry) or entry.suffix in EXTENSIONS:
            found.append(str(entry.relative_to(top or folder)))
    return found


def _output(folder: Path, roots: Iterable[Path], shown_as: str = "") -> str:
    """What the tool prints. It runs without a network where the kernel allows that."""
    named, roots = shown_as or shown(str(folder)), tuple(roots)
    disk.cannot_be_known()
    refuse_foreign(folder, roots, named)
    for program, verb in BUILDERS:
        path = on_path(program)
        if not path or any(disk.resolved(Path(path)).is_relative_to(disk.resolved(root)) for root in roots):
            continue  # Nothing of the project is run.
        done = _run([path, verb, str(folder.absolute())], roots)
        if done is None:
            raise CannotContinue(f"{named}: {program} {verb} took longer than {TIMEOUT_SECONDS} s")
        if done.returncode:
            words = done.stderr.decode(errors="replace").strip().partition("\n")[0]
            raise CannotContinue(f"{named}: {program} {verb}: {words}")
        return done.stdout.decode(errors="replace")
    missing = "build the kustomization: neither kustomize nor kubectl is on the PATH"
    raise CannotContinue(f"{named}: {missing}; install one, or run: kustomize build {named} | seatrial check -")


def _run(command: list[str], roots: Iterable[Path]) -> subprocess.CompletedProcess[bytes] | None:
    with folders.temporary() as home:
        offline = {"PATH": "/usr/bin:/bin", "HOME": home, "LC_ALL": "C"}
        sandboxed = confined(command, home=os.path.realpath(home), seen=(Path(command[0]).parent, *roots))
        try:
            return subprocess.run(
                sandboxed, capture_output=True, timeout=TIMEOUT_SECONDS, env=offline, cwd="/", check=False
            )
        except subprocess.TimeoutExpired:
            return None
