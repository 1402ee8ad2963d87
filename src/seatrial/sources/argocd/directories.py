"""Manifests of a folder as Argo CD's repo-server reads them: which files, which of them it ignores, and its errors.

Upstream: `findManifests`, `getObjsFromYAMLOrJSON` and `splitYAMLOrJSON` in reposerver/repository/repository.go of 3.5.
"""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec
import yaml

from seatrial.model.errors import CannotContinue, NothingToCheck
from seatrial.model.release import Release, Resource
from seatrial.model.resource import Body
from seatrial.sources import disk
from seatrial.sources.files import read_text, shown, within
from seatrial.sources.manifests.reading import EXTENSIONS, may_hold_objects, read_manifests
from seatrial.sources.repos import SourceNotFound
from seatrial.text.source import Text
from seatrial.text.yamlfile import BrokenYaml, documents

LOOKS_LIKE_A_MANIFEST = ("apiVersion:", "kind:", "metadata:")
NOT_IN_JSON = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})
"""What Go escapes beside what JSON requires."""


class UnreadableFile(CannotContinue):
    """A file that Argo CD cannot read, in its words."""


def read_directory(path: Path, root: Path, directory: Body, name: str, namespace: str) -> Release:
    """Manifests of a folder, and of its subfolders with `recurse`."""
    files = sorted(disk.below(path) if directory.get("recurse") else disk.entries(path))
    jsonnet = next((file for file in files if file.suffix == ".jsonnet"), None)
    if jsonnet is not None and _is_included(jsonnet.relative_to(path).as_posix(), directory):
        raise SourceNotFound(f"{shown(str(jsonnet))}: Jsonnet is not evaluated")
    resources: list[Resource] = []
    for file in files:
        if (
            file.suffix in EXTENSIONS
            and disk.is_file(file)
            and _is_included(file.relative_to(path).as_posix(), directory)
        ):
            resources += _resources(within(file, root), name, namespace)
    return Release(name, namespace, shown(str(path)), tuple(resources))


def _resources(file: Path, name: str, namespace: str) -> tuple[Resource, ...]:
    text = read_text(str(file), "read the source of an Application")
    if not may_hold_objects(text):
        return ()
    try:
        return read_manifests(str(file), namespace=namespace, release=name).resources
    except NothingToCheck:
        return ()
    except CannotContinue:
        objects, why = _decoded(text)
        if not why:
            raise
        if not objects and not all(word in text.content for word in LOOKS_LIKE_A_MANIFEST):
            return ()
        raise UnreadableFile(f'Failed to unmarshal "{file.name}": failed to unmarshal manifest: {why}') from None


def _decoded(text: Text) -> tuple[int, str]:
    """How many objects of a file can be read, and why the next one cannot."""
    count = 0
    try:
        for document in documents(text):
            if why := _not_an_object(document.body):
                return count, f"error unmarshaling JSON: while decoding JSON: {why}"
            count += 1
    except BrokenYaml as broken:
        return count, f"error converting YAML to JSON: yaml: {_line(text, broken)}{broken.problem}"
    return count, ""


def _not_an_object(body: Any) -> str:
    if not isinstance(body, dict):
        value = "array" if isinstance(body, list) else "string" if isinstance(body, str) else "number"
        return f"json: cannot unmarshal {value} into Go value of type map[string]interface {{}}"
    if isinstance(body.get("kind"), str) and body["kind"]:
        return ""
    written = msgspec.json.encode(body, order="sorted").decode().translate(NOT_IN_JSON)
    return f"Object 'Kind' is missing in '{written}'"


def _line(text: Text, broken: BrokenYaml) -> str:
    """The line as go-yaml counts: from 0 for what the parser finds, from 1 for the scanner, in the document alone."""
    start = text.content.rfind("\n---", 0, broken.offset)
    start = text.content.find("\n", start + 1) + 1 if start >= 0 else 0
    end = text.content.find("\n---", broken.offset)
    try:
        yaml.compose(text.content[start : end if end >= 0 else None], yaml.CSafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        scanned = isinstance(error, yaml.scanner.ScannerError)
        line = mark.line + scanned if mark and mark.line else 0
        return f"line {line}: " if line else ""
    except yaml.YAMLError:
        pass
    return ""


def _is_included(name: str, directory: Body) -> bool:
    exclude, include = str(directory.get("exclude") or ""), str(directory.get("include") or "")
    if exclude and any(_matches(name, pattern) for pattern in _alternatives(exclude)):
        return False
    return not include or any(_matches(name, pattern) for pattern in _alternatives(include))


def _matches(name: str, pattern: str) -> bool:
    return fnmatch(name, pattern) or PurePosixPath(name).match(pattern)


def _alternatives(pattern: str) -> Iterator[str]:
    """The alternatives of `{a,b}`."""
    if pattern.startswith("{") and pattern.endswith("}"):
        yield from pattern[1:-1].split(",")
    else:
        yield pattern
