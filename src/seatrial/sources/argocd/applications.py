"""Applications of Argo CD become releases: their sources, found in checkouts that stand for repository URLs, rendered.

Renders as Argo CD's repo-server does (`reposerver/repository/repository.go`, `util/helm/cmd.go` of 3.5): always for an
install, in revision 1. Nothing is fetched.
"""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from seatrial.model.errors import CannotContinue, NothingToCheck
from seatrial.model.release import Release, Resource
from seatrial.model.resource import Body, dig, listed, name_of
from seatrial.sources.argocd.helm import Asked, helm_release
from seatrial.sources.charts.values import merge_patch
from seatrial.sources.files import read_text, shown
from seatrial.sources.manifests import kustomize
from seatrial.sources.manifests.kustomize_edits import edits_of
from seatrial.sources.manifests.reading import EXTENSIONS, read_manifests
from seatrial.sources.repos import NotAtHand, Repos, chart_in
from seatrial.text.yamlfile import documents

OWN_FIELDS = ("repoURL", "path", "chart", "targetRevision")
"""What no file beside a source can change."""
FAILED = "ComparisonError: Failed to load target state: failed to generate manifest for source"
UNKNOWN = "rpc error: code = Unknown desc ="


class Rendered(Struct, frozen=True):
    """What became of an Application's sources: a release, or Argo CD's words why there is none."""

    release: Release | None
    error: str = ""


def render_application(application: Body, repos: Repos, *, globs: bool = True, **options: Any) -> Rendered:
    """The objects of all sources of an Application. Raises `NotAtHand` where one is not among the `repos`."""
    sources = listed(application, "spec", "sources") or [dig(application, "spec", "source") or {}]
    name, project = name_of(application), str(dig(application, "spec", "project") or "default")
    namespace = str(dig(application, "spec", "destination", "namespace") or "")
    references = {f"${s['ref']}": _root(s, repos) for s in sources if s.get("ref")}
    resources: list[Resource] = []
    missing: list[str] = []
    for index, source in enumerate(sources, start=1):
        if source.get("ref") and not source.get("path") and not source.get("chart"):
            continue
        asked = Asked(source, name, namespace, references, options, project, globs)
        try:
            release = _release(asked, repos)
        except CannotContinue as why:
            words = f"{FAILED} {index} of {len(sources)}: {UNKNOWN} {why}"
            return Rendered(None, words)
        resources += release.resources
        missing += release.missing_dependencies
    where = str(dig(sources[0], "path") or dig(sources[0], "chart") or "")
    return Rendered(Release(name, namespace, where, tuple(resources), missing_dependencies=tuple(missing)))


def _release(asked: Asked, repos: Repos) -> Release:
    root = _root(asked.source, repos)
    path = _chart_in(root, asked.source) if asked.source.get("chart") else _path_in(root, asked.source)
    asked = replace(asked, source=_overridden(asked, path))
    match _kind(asked.source, path):
        case "Helm":
            return helm_release(path, root, asked)
        case "Kustomize":
            return kustomize.build(path, asked.name, asked.namespace, edits=edits_of(asked.source), root=root)
        case "Plugin":
            raise NotAtHand("what a plugin makes of it is not known here")
    return _of_directory(path, asked)


def _overridden(asked: Asked, path: Path) -> Body:
    """The source as files beside it say: for every Application that is made of it, then for this one."""
    source = asked.source
    for name in (".argocd-source.yaml", f".argocd-source-{asked.name}.yaml"):
        file = path / name
        if file.is_file():
            text = read_text(str(file), "read what overrides the source of an Application")
            source = merge_patch(source, next((document.body for document in documents(text)), {}))
    kept: Body = {key: asked.source[key] for key in OWN_FIELDS if key in asked.source}
    return {**{key: value for key, value in source.items() if key not in OWN_FIELDS}, **kept}


def _kind(source: Body, path: Path) -> str:
    """What a source says that it is; else what is in it."""
    said = [
        field.capitalize() for field in ("kustomize", "helm", "directory", "plugin") if source.get(field) is not None
    ]
    if len(said) > 1:
        raise CannotContinue(
            f"error getting explicit source type: multiple application sources defined: {','.join(said)}"
        )
    if said and not path.is_file():
        return said[0]
    if path.is_file() or (path / "Chart.yaml").is_file():
        return "Helm"
    return "Kustomize" if kustomize.is_kustomization(path) else "Directory"


def _root(source: Body, repos: Repos) -> Path:
    url = str(source.get("repoURL") or "")
    root = repos.find(url)
    if root is None:
        raise NotAtHand(f"{url} is not at hand (--repo {url}=PATH)")
    return root


def _path_in(root: Path, source: Body) -> Path:
    asked = str(source.get("path") or ".")
    path = root / asked
    if asked.startswith("/"):
        raise CannotContinue(f"{asked}: app path is absolute")
    if not path.exists() or not path.resolve().is_relative_to(root.resolve()):
        raise CannotContinue(f"{asked}: app path does not exist")
    return path


def _chart_in(root: Path, source: Body) -> Path:
    return chart_in(root, str(source["chart"]), str(source.get("targetRevision") or ""))


def _of_directory(path: Path, asked: Asked) -> Release:
    """Plain manifests: of this folder alone, unless it says `recurse`."""
    directory = asked.source.get("directory") or {}
    files = sorted(path.rglob("*") if directory.get("recurse") else path.iterdir())
    jsonnet = next((file for file in files if file.suffix == ".jsonnet"), None)
    if jsonnet is not None and _is_included(jsonnet.relative_to(path).as_posix(), directory):
        raise NotAtHand(f"{shown(str(jsonnet))}: Jsonnet is not evaluated here")
    resources: list[Resource] = []
    for file in files:
        if file.suffix in EXTENSIONS and file.is_file() and _is_included(file.relative_to(path).as_posix(), directory):
            try:
                found = read_manifests(str(file), namespace=asked.namespace, release=asked.name)
            except NothingToCheck:
                continue
            resources += found.resources
    return Release(asked.name, asked.namespace, shown(str(path)), tuple(resources))


def _is_included(name: str, directory: Body) -> bool:
    exclude, include = str(directory.get("exclude") or ""), str(directory.get("include") or "")
    if exclude and any(_matches(name, pattern) for pattern in _alternatives(exclude)):
        return False
    return not include or any(_matches(name, pattern) for pattern in _alternatives(include))


def _matches(name: str, pattern: str) -> bool:
    return fnmatch(name, pattern) or PurePosixPath(name).match(pattern)


def _alternatives(pattern: str) -> Iterator[str]:
    """`{a,b}` as its parts."""
    if pattern.startswith("{") and pattern.endswith("}"):
        yield from pattern[1:-1].split(",")
    else:
        yield pattern
