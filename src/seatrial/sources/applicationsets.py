"""ApplicationSets become Applications, where their generators can be decided without a cluster or a forge.

Upstream: `applicationset/generators` and `applicationset/utils` of Argo CD 3.5.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from itertools import product
from pathlib import Path
from typing import Any

import msgspec

from seatrial import helmsdk
from seatrial.errors import CannotContinue
from seatrial.helmsdk import Chart, HelmError
from seatrial.resource import Body, dig, listed, metadata, name_of
from seatrial.sources.argocd import NotAtHand, Repos
from seatrial.sources.chartfiles import ChartFiles, archived
from seatrial.sources.files import read_text
from seatrial.sources.values import merged
from seatrial.yamlfile import documents

IN_CLUSTER: Body = {"name": "in-cluster", "nameNormalized": "in-cluster", "server": "https://kubernetes.default.svc"}
FOLDERS_MAX = 5_000
APPLICATIONS_MAX = 2_000
_KEY = re.compile(r"\{\{\s*([^{}]*?)\s*\}\}")
_NOT_IN_NAMES = re.compile(r"[^-a-z0-9.]+")


def applications_of(application_set: Body, repos: Repos) -> list[Body]:
    """The Applications that a set makes. Raises `NotAtHand` where that is not to be known here."""
    go = bool(dig(application_set, "spec", "goTemplate"))
    template = dig(application_set, "spec", "template") or {}
    found = []
    for generator in listed(application_set, "spec", "generators"):
        for parameters in _generated(generator, repos, go=go):
            body = _filled(merged(template, generator.get("template") or {}), parameters, go=go)
            found.append(_application(body, application_set))
            if len(found) > APPLICATIONS_MAX:
                raise CannotContinue(f"{name_of(application_set)}: makes more than {APPLICATIONS_MAX} Applications")
    return found


def _application(template: Body, application_set: Body) -> Body:
    meta = metadata(template)
    home = metadata(application_set).get("namespace") or "argocd"
    kept = {key: meta[key] for key in ("name", "labels", "annotations", "finalizers") if key in meta}
    own = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "spec": template.get("spec") or {}}
    preserved = dig(application_set, "spec", "syncPolicy", "preserveResourcesOnDeletion")
    finalizers = kept.get("finalizers") or ([] if preserved else ["resources-finalizer.argocd.argoproj.io"])
    return {**own, "metadata": {**kept, "namespace": home, "finalizers": finalizers}}


def _generated(generator: Body, repos: Repos, *, go: bool) -> Iterator[Body]:
    """The parameters of each Application that one generator makes."""
    match generator:
        case {"list": {"elements": list(elements)}}:
            yield from (element for element in elements if isinstance(element, dict))
        case {"git": {"directories": list(patterns)} as git}:
            yield from _directories(git, patterns, repos, go=go)
        case {"git": {"files": list(patterns)} as git}:
            yield from _files(git, patterns, repos, go=go)
        case {"clusters": dict(clusters)} if not clusters.get("selector"):
            yield {**IN_CLUSTER, **({"values": clusters["values"]} if "values" in clusters else {})}
        case {"matrix": {"generators": [first, second]}}:
            yield from _matrix(first, second, repos, go=go)
        case _:
            kind = next((key for key in generator if key not in ("selector", "template")), "empty")
            raise NotAtHand(f"its {kind} generator asks what is not known here")


def _matrix(first: Body, second: Body, repos: Repos, *, go: bool) -> Iterator[Body]:
    """Every pair; the second generator may name parameters of the first."""
    for left in _generated(first, repos, go=go):
        rights = list(_generated(_filled(second, left, go=go), repos, go=go))
        yield from (merged(one, other) for one, other in product([left], rights))


def _directories(git: Body, patterns: list[Any], repos: Repos, *, go: bool) -> Iterator[Body]:
    root = _checkout(git, repos)
    folders = sorted(p for p in root.rglob("*") if p.is_dir() and not _is_hidden(p.relative_to(root)))
    if len(folders) > FOLDERS_MAX:
        raise CannotContinue(f"{root}: more than {FOLDERS_MAX} folders")
    for folder in folders:
        path = folder.relative_to(root).as_posix()
        taken = [p for p in patterns if isinstance(p, dict) and _is_like(path, str(p.get("path") or ""))]
        if taken and not any(p.get("exclude") for p in taken):
            yield merged(_path_parameters(path, go=go), _values(git, go=go, parameters=_path_parameters(path, go=go)))


def _files(git: Body, patterns: list[Any], repos: Repos, *, go: bool) -> Iterator[Body]:
    root = _checkout(git, repos)
    for pattern in patterns:
        for file in sorted(root.glob(str(dig(pattern, "path") or ""))):
            body = next((d.body for d in documents(read_text(str(file), "read the file of an ApplicationSet"))), None)
            path = _path_parameters(file.parent.relative_to(root).as_posix(), go=go)
            for entry in body if isinstance(body, list) else [body]:
                if isinstance(entry, dict):
                    yield merged(entry if go else dict(_flat(entry, "")), path)


def _checkout(git: Body, repos: Repos) -> Path:
    url = str(git.get("repoURL") or "")
    root = repos.find(url)
    if root is None:
        raise NotAtHand(f"{url} is not at hand (--repo {url}=PATH)")
    return root


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def _is_like(path: str, pattern: str) -> bool:
    """Go's `path.Match`, whose stars stop at slashes, or `**` for any depth."""
    if "**" in pattern:
        return fnmatchcase(path, pattern.replace("**", "*"))
    parts, wanted = path.split("/"), pattern.removesuffix("/").split("/")
    return len(parts) == len(wanted) and all(map(fnmatchcase, parts, wanted))


def _path_parameters(path: str, *, go: bool) -> Body:
    segments = path.split("/")
    basename = segments[-1]
    normalized = _NOT_IN_NAMES.sub("-", basename.lower())
    if go:
        about = {"path": path, "basename": basename, "basenameNormalized": normalized, "segments": segments}
        return {"path": about}
    numbered = {f"path[{index}]": segment for index, segment in enumerate(segments)}
    return {"path": path, "path.basename": basename, "path.basenameNormalized": normalized, **numbered}


def _values(generator: Body, parameters: Body, *, go: bool) -> Body:
    found = generator.get("values") or {}
    filled: Body = _filled(found, parameters, go=go) if found else {}
    if go:
        return {"values": filled} if filled else {}
    return {f"values.{key}": value for key, value in filled.items()}


def _flat(body: Body, prefix: str) -> Iterator[tuple[str, Any]]:
    for key, value in body.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _filled(template: Body, parameters: Body, *, go: bool) -> Body:
    if go:
        executed: Body = _executed(template, parameters)
        return executed
    flat = dict(_flat(parameters, ""))
    text = msgspec.json.encode(template).decode()

    def value(found: re.Match[str]) -> str:
        # What is no parameter is left as it stands.
        return msgspec.json.encode(str(flat[found[1]])).decode()[1:-1] if found[1] in flat else found[0]

    filled: Body = msgspec.json.decode(_KEY.sub(value, text))
    return filled


def _executed(template: Any, parameters: Body) -> Any:
    """Every text of a template through Go's templates, by way of Helm, which has the same functions."""
    texts = sorted(set(_texts(template)))
    asked = {f"templates/t{index}.txt": _within(text) for index, text in enumerate(texts)}
    files = {"Chart.yaml": b"apiVersion: v2\nname: set\nversion: 0.0.1\n", **asked}
    try:
        with Chart.load_archive(archived(ChartFiles("", files), "set")) as chart:
            rendered = helmsdk.render(chart, parameters, name="set", namespace="default")
    except HelmError as error:
        raise CannotContinue(f"fill the template of an ApplicationSet: {error}") from None
    results = {text: rendered.get(f"set/templates/t{index}.txt", "") for index, text in enumerate(texts)}
    return _replaced(template, results)


def _within(text: str) -> bytes:
    return f"{{{{- with .Values -}}}}{text}{{{{- end -}}}}".encode()


def _texts(node: Any) -> Iterator[str]:
    if isinstance(node, str) and "{{" in node:
        yield node
    elif isinstance(node, dict):
        for key, value in node.items():
            yield from _texts(key)
            yield from _texts(value)
    elif isinstance(node, list):
        for value in node:
            yield from _texts(value)


def _replaced(node: Any, results: dict[str, str]) -> Any:
    if isinstance(node, str):
        return results.get(node, node)
    if isinstance(node, dict):
        return {results.get(key, key): _replaced(value, results) for key, value in node.items()}
    if isinstance(node, list):
        return [_replaced(value, results) for value in node]
    return node
