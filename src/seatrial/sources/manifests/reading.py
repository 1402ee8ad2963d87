"""Reading manifests from files, folders and standard input into a release. Knows nothing of charts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from seatrial.model import lazy_re
from seatrial.model.errors import CannotContinue, NothingToCheck
from seatrial.model.release import Release
from seatrial.model.resource import Place, group_of
from seatrial.sources import disk
from seatrial.sources.files import STDIN, project_of, read_text, reason, shown, within
from seatrial.sources.manifests import kustomize
from seatrial.sources.manifests.objects import Found, defined_scopes, objects_in, resources
from seatrial.sources.manifests.parts import part_of
from seatrial.text.source import Text
from seatrial.text.yamlfile import Document, documents

EXTENSIONS = (".json", ".yaml", ".yml")
FILES_MAX = 10_000

KEYS_MIN = 2

_DOING = "read the manifests"
_WORDS = r"(apiVersion|kind|metadata|items)"
_YAML_KEY = lazy_re.compile(rf"^(?:---[ \t]+)?[\"']?{_WORDS}[\"']?[ \t]*:", re.M)
_JSON_KEY = lazy_re.compile(rf"[\"']?{_WORDS}[\"']?\s*:")


def read_manifests(
    path: str,
    namespace: str = "default",
    *,
    release: str = "",
    instead: Mapping[str, str] | None = None,
    recursive: bool = True,
) -> Release:
    """The objects in a file, a folder or standard input (`-`).

    A folder is read as by `kubectl apply -R -f`: its .json, .yaml and .yml files and those of its subfolders, sorted by
    name; a folder with a kustomization.yaml is built, as with `-k`. `recursive=False` skips subfolders, as without
    `-R`. `instead` is text to use instead of files, by the path that the user would type.
    """
    if path != STDIN and kustomize.is_kustomization(Path(path)):
        return kustomize.build(Path(path), release, namespace)
    texts = [_text(name, instead or {}) for name in _files(path, recursive=recursive)]
    skipped = [text.path for text in texts if path != STDIN and disk.is_dir(Path(path)) and not may_hold_objects(text)]
    found = [one for text in texts if text.path not in skipped for one in _objects(text)]
    if not found:
        raise NothingToCheck(f"{shown(path)}: contains no Kubernetes object")
    scopes = defined_scopes(found)
    return Release(release, namespace, path, tuple(resources(found, namespace, scopes)), skipped=tuple(skipped))


def may_hold_objects(text: Text) -> bool:
    """Whether a file looks like Kubernetes objects: two of `apiVersion`, `kind` and `metadata`.

    Workflows, values files and the like do not. What looks like an object and is broken is refused with its place, and
    so is a file of a chart, whose folder is the input. Argo CD looks for the same three words (`findManifests`).
    """
    keys = _JSON_KEY if text.content.lstrip().startswith(("{", "[")) else _YAML_KEY
    return len(set(keys.findall(text.content))) >= KEYS_MIN or bool(part_of(text.path))


def kinds_in(path: str) -> set[tuple[str, str]]:
    """Groups and kinds of the objects in a file or folder; unreadable files are skipped."""
    if kustomize.is_kustomization(Path(path)):
        return {(resource.ref.group, resource.ref.kind) for resource in read_manifests(path).resources}
    found: set[tuple[str, str]] = set()
    for name in _files(path, recursive=True):
        with suppress(CannotContinue):
            bodies = [one.body for one in _objects(read_text(name, _DOING))]
            found |= {(group_of(str(body["apiVersion"])), str(body["kind"])) for body in bodies}
    return found


def _files(path: str, *, recursive: bool) -> Iterator[str]:
    root = Path(path)
    if not disk.is_dir(root):
        yield path
        return
    project = project_of(root)
    for count, file in enumerate(_walk(root, recursive=recursive)):
        if count == FILES_MAX:
            raise CannotContinue(f"{shown(path)}: {_DOING}: more than {FILES_MAX} files")
        yield str(within(file, project))


def _walk(folder: Path, *, recursive: bool) -> Iterator[Path]:
    try:
        entries = sorted(disk.entries(folder), key=lambda entry: entry.name)
    except OSError as error:
        raise CannotContinue(f"{shown(str(folder))}: {_DOING}: {reason(error)}") from None
    for entry in entries:
        if disk.is_dir(entry) and not disk.is_symlink(entry):
            yield from _walk(entry, recursive=True) if recursive else ()
        elif entry.suffix in EXTENSIONS and disk.is_file(entry):
            yield entry


def _text(path: str, instead: Mapping[str, str]) -> Text:
    named = shown(path)
    return Text(named, instead[named]) if named in instead else read_text(path, _DOING)


def _objects(text: Text) -> Iterator[Found]:
    try:
        for document in documents(text):
            yield from objects_in(document, text.path, _where)
    except CannotContinue:
        if sentence := part_of(text.path):
            raise CannotContinue(sentence) from None
        raise


def _where(document: Document, offset: int) -> Place:
    return Place(document.text.path, document.text.line(offset))
