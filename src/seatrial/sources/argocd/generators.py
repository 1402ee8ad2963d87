"""The parameters of ApplicationSet generators that need neither a cluster nor a forge.

Upstream: `applicationset/generators` of Argo CD 3.5.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from seatrial.model import lazy_re
from seatrial.model.errors import CannotContinue
from seatrial.model.resource import Body, dig, listed
from seatrial.sources import disk
from seatrial.sources.charts.values import merged
from seatrial.sources.files import read_text, within
from seatrial.sources.repos import Repos, SourceNotFound
from seatrial.text.source import Text
from seatrial.text.yamlfile import BrokenYaml, documents

IN_CLUSTER: Body = {"name": "in-cluster", "nameNormalized": "in-cluster", "server": "https://kubernetes.default.svc"}
FILES_MAX = 20_000
NAME_MAX = 253
KINDS = ("list", "git", "clusters", "matrix", "merge")
_NOT_IN_NAMES = lazy_re.compile(r"[^-a-z0-9.]")

Fill = Callable[[Any, Body], Any]
"""Fills a template with parameters."""


class Ground(Struct, frozen=True):
    """The environment of generators: local checkouts, and the template syntax."""

    repos: Repos
    go: bool
    fill: Fill


def generated(generator: Body, ground: Ground) -> Iterator[Body]:
    """The parameters of each Application of one generator, filtered by its selector."""
    for parameters in _made(generator, ground):
        if _is_selected(parameters, generator.get("selector")):
            yield parameters


def own_template(generator: Body) -> Body:
    """The template of a generator, which overrides that of its set."""
    return next((dig(generator, kind, "template") or {} for kind in KINDS if kind in generator), {})


def flat(body: Any, prefix: str = "") -> Iterator[tuple[str, str]]:
    """All values by dotted path, as Go prints them."""
    pairs = body.items() if isinstance(body, dict) else enumerate(body)
    for key, value in pairs:
        if isinstance(value, dict | list) and value:
            yield from flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", printed(value)


def printed(value: Any) -> str:
    """Go's `%v` of a JSON value, whose numbers are all floats."""
    match value:
        case None:
            return "<nil>"
        case bool():
            return str(value).lower()
        case int() | float() if abs(value) >= 1e6:
            digits, _, exponent = f"{Decimal(repr(float(value))).normalize():e}".partition("e")
            return f"{digits}e{int(exponent):+03d}"
        case float() if value.is_integer():
            return str(int(value))
    return str(value)


def _made(generator: Body, ground: Ground) -> Iterator[Body]:
    match generator:
        case {"list": dict(elements)}:
            yield from _elements(elements, ground)
        case {"git": {"directories": list(patterns)} as git}:
            yield from _directories(git, patterns, ground)
        case {"git": {"files": list(patterns)} as git}:
            yield from _files(git, patterns, ground)
        case {"clusters": dict(clusters)} if not clusters.get("selector"):
            yield {**IN_CLUSTER, **_values(clusters, IN_CLUSTER, ground)}
        case {"matrix": {"generators": [first, second]}}:
            yield from _pairs(first, second, ground)
        case {"merge": {"generators": [first, *others], "mergeKeys": list(keys)}} if others and keys:
            yield from _overlaid(first, others, keys, ground)
        case _:
            kind = next((key for key in generator if key not in ("selector", "template")), "empty")
            raise SourceNotFound(f"its {kind} generator needs data from outside of the input")


def _elements(generator: Body, ground: Ground) -> Iterator[Body]:
    for element in generator.get("elements") or ():
        if ground.go:
            yield element
            continue
        for name, value in {**element, **(element.get("values") or {})}.items():
            if name != "values" and not isinstance(value, str):
                raise CannotContinue(f"a list generator: {name}: {printed(value)} is no string, as it must be here")
        values = {f"values.{name}": value for name, value in (element.get("values") or {}).items()}
        yield {**{name: value for name, value in element.items() if name != "values"}, **values}
    if generator.get("elementsYaml"):
        yield from _objects(Text("elementsYaml", str(generator["elementsYaml"])))


def _pairs(first: Body, second: Body, ground: Ground) -> Iterator[Body]:
    """Every pair; the second generator may use parameters of the first, and does not change them."""
    for left in generated(first, ground):
        for right in generated(ground.fill(second, left), ground):
            if ground.go:
                yield merged(right, left)
                continue
            for name in left.keys() & right.keys():
                if printed(left[name]) != printed(right[name]):
                    two = f"a: {printed(left[name])} ,b: {printed(right[name])}"
                    raise CannotContinue(f"a matrix generator: found duplicate key {name} with different value, {two}")
            yield {**left, **right}


def _overlaid(first: Body, others: list[Body], keys: list[Any], ground: Ground) -> Iterator[Body]:
    """The parameters of the first generator, overridden by those of others with the same key."""
    found = _by_key(first, keys, ground)
    for other in others:
        for key, parameters in _by_key(other, keys, ground).items():
            if key in found:
                found[key] = merged(found[key], parameters) if ground.go else {**found[key], **parameters}
    yield from found.values()


def _by_key(generator: Body, keys: list[Any], ground: Ground) -> dict[bytes, Body]:
    found: dict[bytes, Body] = {}
    for parameters in generated(generator, ground):
        key = msgspec.json.encode({str(name): parameters.get(str(name)) for name in keys}, order="sorted")
        if key in found:
            words = (
                "the parameters from a generator were not unique by the given mergeKeys, Merge requires all param sets"
            )
            raise CannotContinue(f"a merge generator: {words} to be unique. Duplicate key was {key.decode()}")
        found[key] = parameters
    return found


def _directories(git: Body, patterns: list[Any], ground: Ground) -> Iterator[Body]:
    root = _checkout(git, ground)
    folders = [p for p in _within(root) if disk.is_dir(p) and not any(part.startswith(".") for part in _parts(p, root))]
    for folder in folders:
        path = folder.relative_to(root).as_posix()
        taken = [p for p in patterns if _is_like(path, str(dig(p, "path") or ""))]
        if taken and not any(p.get("exclude") for p in taken):
            about = _path_parameters(git, path, "", ground)
            yield {**about, **_values(git, about, ground)}


def _files(git: Body, patterns: list[Any], ground: Ground) -> Iterator[Body]:
    """Files that match a pattern of git, whose stars also match slashes."""
    root = _checkout(git, ground)
    for file in _within(root):
        path = file.relative_to(root).as_posix()
        taken = [p for p in patterns if fnmatchcase(path, str(dig(p, "path") or ""))]
        if not disk.is_file(file) or not taken or any(p.get("exclude") for p in taken):
            continue
        about = _path_parameters(git, file.parent.relative_to(root).as_posix(), file.name, ground)
        for entry in _objects(read_text(str(within(file, root)), "read the file of an ApplicationSet")):
            known = {**(entry if ground.go else dict(flat(entry))), **about}
            yield {**known, **_values(git, known, ground)}


def _objects(text: Text) -> Iterator[Body]:
    try:
        body: Any = next((document.body for document in documents(text)), {})
    except BrokenYaml as broken:
        raise CannotContinue(f"{text.path}: unable to parse file: {broken.problem}") from None
    for entry in body if isinstance(body, list) else [body]:
        if not isinstance(entry, dict):
            raise CannotContinue(f"{text.path}: unable to parse file: neither an object nor a list of them")
        yield entry


def _checkout(git: Body, ground: Ground) -> Path:
    url = str(git.get("repoURL") or "")
    root = ground.repos.find(url)
    if root is None:
        raise SourceNotFound(f"its repository {url} was not found (pass --repo {url}=PATH)")
    return root


def _within(root: Path) -> list[Path]:
    found = sorted(path for path in disk.below(root) if ".git" not in _parts(path, root))
    if len(found) > FILES_MAX:
        raise CannotContinue(f"{root}: more than {FILES_MAX} files and folders")
    return found


def _parts(path: Path, root: Path) -> tuple[str, ...]:
    return path.relative_to(root).parts


def _is_like(path: str, pattern: str) -> bool:
    """Go's `path.Match`: stars, single or double, do not match slashes."""
    parts, wanted = path.split("/"), pattern.split("/")
    return len(parts) == len(wanted) and all(map(fnmatchcase, parts, wanted))


def _path_parameters(git: Body, path: str, filename: str, ground: Ground) -> Body:
    segments = path.split("/")
    about: Body = {"path": path, "basename": segments[-1], "basenameNormalized": normalized(segments[-1])}
    if filename:
        about |= {"filename": filename, "filenameNormalized": normalized(filename)}
    prefix = str(git.get("pathParamPrefix") or "")
    if ground.go:
        nested = {"path": {**about, "segments": segments}}
        return {prefix: nested} if prefix else nested
    name = f"{prefix}.path" if prefix else "path"
    named = {name if key == "path" else f"{name}.{key}": value for key, value in about.items()}
    return {**named, **{f"{name}[{index}]": segment for index, segment in enumerate(segments)}}


def normalized(name: str) -> str:
    """A valid Kubernetes name: `SanitizeName`."""
    return _NOT_IN_NAMES.sub("-", name.lower())[:NAME_MAX].strip("-.")


def _values(generator: Body, parameters: Body, ground: Ground) -> Body:
    found = generator.get("values") or {}
    filled: Body = ground.fill(found, parameters) if found else {}
    if ground.go:
        return {"values": filled} if filled else {}
    return {f"values.{key}": value for key, value in filled.items()}


def _is_selected(parameters: Body, selector: Body | None) -> bool:
    """A label selector, applied to all parameters."""
    if selector is None:
        return True
    texts = dict(flat(parameters))
    if any(texts.get(str(key)) != value for key, value in (selector.get("matchLabels") or {}).items()):
        return False
    return all(_fits(texts, expression) for expression in listed(selector, "matchExpressions"))


def _fits(texts: dict[str, str], expression: Body) -> bool:
    value, values = texts.get(str(expression.get("key"))), expression.get("values") or ()
    match expression.get("operator"):
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
    raise CannotContinue(f'a generator: "{expression.get("operator")}" is not a valid label selector operator')
