"""Kustomizations, built by the user's own kustomize or kubectl. Knows nothing of what they hold."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from seatrial.case import Release
from seatrial.errors import CannotContinue
from seatrial.resource import Body, Place
from seatrial.sources.files import read_text, shown
from seatrial.sources.objects import defined_scopes, objects_in, resources
from seatrial.text import Text
from seatrial.yamlfile import BrokenYaml, documents

FILES = ("kustomization.yaml", "kustomization.yml", "Kustomization")
TIMEOUT_SECONDS = 60
BUILDERS = (("kustomize", "build"), ("kubectl", "kustomize"))


def is_kustomization(folder: Path) -> bool:
    return any((folder / name).is_file() for name in FILES)


def build(
    folder: Path,
    name: str,
    namespace: str,
    change: Callable[[str], str] = str,
    *,
    edits: Callable[[Body], Body] | None = None,
    root: Path | None = None,
) -> Release:
    """What a kustomization gives, `change`d as text. Remote bases are not fetched: whoever builds it is offline.

    With `edits` it is built from a copy of its `root` in which they were made.
    """
    file = next(shown(str(folder / name)) for name in FILES if (folder / name).is_file())
    output = _output(folder) if edits is None else _edited(folder, root or folder, edits)
    text = Text(file, change(output))
    try:
        found = [
            one
            for document in documents(text)
            for one in objects_in(document, file, lambda document, offset: Place(file, 1, "file"))
        ]
    except BrokenYaml as broken:
        raise CannotContinue(f"{file}: read what kustomize built: {broken.problem}") from None
    return Release(name, namespace, shown(str(folder)), tuple(resources(found, namespace, defined_scopes(found))))


def _edited(folder: Path, root: Path, edits: Callable[[Body], Body]) -> str:
    with TemporaryDirectory() as copy:
        inside = Path(copy, "root")
        shutil.copytree(root, inside, ignore=shutil.ignore_patterns(".git"), symlinks=True)
        there = inside / folder.relative_to(root)
        file = next(there / name for name in FILES if (there / name).is_file())
        text = read_text(str(file), "read the kustomization")
        body = next((document.body for document in documents(text)), None) or {}
        file.write_bytes(msgspec.json.encode(edits(body)))
        return _output(there, shown(str(folder)))


def _output(folder: Path, shown_as: str = "") -> str:
    named = shown_as or shown(str(folder))
    for program, verb in BUILDERS:
        path = shutil.which(program)
        if path is None:
            continue
        offline = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "LC_ALL": "C"}
        command = [path, verb, str(folder)]
        try:
            done = subprocess.run(command, capture_output=True, timeout=TIMEOUT_SECONDS, env=offline, check=False)
        except subprocess.TimeoutExpired:
            raise CannotContinue(f"{named}: {program} {verb} took longer than {TIMEOUT_SECONDS} s") from None
        if done.returncode:
            words = done.stderr.decode(errors="replace").strip().partition("\n")[0]
            raise CannotContinue(f"{named}: {program} {verb}: {words}")
        return done.stdout.decode(errors="replace")
    nobody = "this is a kustomization, and there is neither kustomize nor kubectl on the PATH"
    raise CannotContinue(f"{named}: {nobody}; pipe it in: kustomize build {named} | seatrial check -")
