"""From Argo CD Applications to releases: their sources, found in local checkouts, rendered.

Renders as Argo CD's repo-server does (`reposerver/repository/repository.go`, `util/helm/cmd.go` of 3.5): always for an
install, in revision 1. Nothing is fetched.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from seatrial.model.errors import CannotContinue
from seatrial.model.release import Release
from seatrial.model.resource import Body, dig, listed, name_of
from seatrial.sources import disk
from seatrial.sources.argocd.directories import UnreadableFile, read_directory
from seatrial.sources.argocd.helm import HelmSource, helm_release
from seatrial.sources.charts.values import merge_patch
from seatrial.sources.fetching import chart_command, get_repo
from seatrial.sources.files import read_text, within
from seatrial.sources.manifests import kustomize
from seatrial.sources.manifests.kustomize_edits import edits_of
from seatrial.sources.repos import Repos, SourceNotFound, chart_in
from seatrial.text.yamlfile import documents

OWN_FIELDS = ("repoURL", "path", "chart", "targetRevision")
"""Fields that `.argocd-source.yaml` cannot override."""
FAILED = "ComparisonError: Failed to load target state: failed to generate manifest for source"


class RenderedApplication(Struct, frozen=True):
    """The rendered sources of an Application: a release, or the error of Argo CD."""

    release: Release | None
    error: str = ""


def render_application(application: Body, repos: Repos, *, globs: bool = True, **options: Any) -> RenderedApplication:
    """The objects of all sources of an Application. Raises `SourceNotFound` if a source is not in `repos`."""
    sources = listed(application, "spec", "sources") or [dig(application, "spec", "source") or {}]
    name, project = name_of(application), str(dig(application, "spec", "project") or "default")
    namespace = str(dig(application, "spec", "destination", "namespace") or "")
    references = {f"${s['ref']}": _root(s, repos) for s in sources if s.get("ref")}
    releases: list[Release] = []
    for index, source in enumerate(sources, start=1):
        if source.get("ref") and not source.get("path") and not source.get("chart"):
            continue
        asked = HelmSource(source, name, namespace, references, options, project, globs)
        try:
            releases.append(_release(asked, repos))
        except CannotContinue as why:
            code = "FailedPrecondition" if isinstance(why, UnreadableFile) else "Unknown"
            words = f"{FAILED} {index} of {len(sources)}: rpc error: code = {code} desc = {why}"
            return RenderedApplication(None, words)
    where = str(dig(sources[0], "path") or dig(sources[0], "chart") or "")
    whole = Release(
        name,
        namespace,
        where,
        tuple(r for release in releases for r in release.resources),
        missing_dependencies=tuple(name for release in releases for name in release.missing_dependencies),
        pins=tuple(pin for release in releases for pin in release.pins),
        absent_charts=tuple(one for release in releases for one in release.absent_charts),
        left_out=tuple(hook for release in releases for hook in release.left_out),
        behind_lookup=tuple(resource for release in releases for resource in release.behind_lookup),
        skipped_crds=tuple(crd for release in releases for crd in release.skipped_crds),
        notes=tuple(note for release in releases for note in release.notes),
    )
    return RenderedApplication(whole)


def _release(asked: HelmSource, repos: Repos) -> Release:
    root = _root(asked.source, repos)
    path = _chart_in(root, asked.source) if asked.source.get("chart") else _path_in(root, asked.source)
    asked = replace(asked, source=_overridden(asked, path, root))
    match _kind(asked.source, path):
        case "Helm":
            return helm_release(path, root, asked)
        case "Kustomize":
            return kustomize.build(path, asked.name, asked.namespace, edits=edits_of(asked.source), root=root)
        case "Plugin":
            raise SourceNotFound("its source uses a config management plugin, which is not run")
    return read_directory(path, root, asked.source.get("directory") or {}, asked.name, asked.namespace)


def _overridden(asked: HelmSource, path: Path, root: Path) -> Body:
    """The source with the overrides of `.argocd-source.yaml`, then of `.argocd-source-APP.yaml`."""
    source = asked.source
    for name in (".argocd-source.yaml", f".argocd-source-{asked.name}.yaml"):
        file = path / name
        if disk.is_file(file):
            text = read_text(str(within(file, root)), "read what overrides the source of an Application")
            source = merge_patch(source, next((document.body for document in documents(text)), {}))
    kept: Body = {key: asked.source[key] for key in OWN_FIELDS if key in asked.source}
    return {**{key: value for key, value in source.items() if key not in OWN_FIELDS}, **kept}


def _kind(source: Body, path: Path) -> str:
    """The type of a source: explicit, or detected from its files."""
    said = [
        field.capitalize() for field in ("kustomize", "helm", "directory", "plugin") if source.get(field) is not None
    ]
    if len(said) > 1:
        raise CannotContinue(
            f"error getting explicit source type: multiple application sources defined: {','.join(said)}"
        )
    if said and not disk.is_file(path):
        return said[0]
    if disk.is_file(path) or disk.is_file(path / "Chart.yaml"):
        return "Helm"
    return "Kustomize" if kustomize.is_kustomization(path) else "Directory"


def _root(source: Body, repos: Repos) -> Path:
    url = str(source.get("repoURL") or "")
    root = repos.find(url)
    if root is None:
        chart, version = str(source.get("chart") or ""), str(source.get("targetRevision") or "")
        get = (
            f"To rehearse it: {chart_command(chart, url, version)}, then add --repo {url}=." if chart else get_repo(url)
        )
        raise SourceNotFound(f"its source {url} is not on disk. {get}")
    return root


def _path_in(root: Path, source: Body) -> Path:
    asked = str(source.get("path") or ".")
    path = root / asked
    if asked.startswith("/"):
        raise CannotContinue(f"{asked}: app path is absolute")
    if not disk.exists(path) or not disk.resolved(path).is_relative_to(disk.resolved(root)):
        raise CannotContinue(f"{asked}: app path does not exist")
    return path


def _chart_in(root: Path, source: Body) -> Path:
    return chart_in(root, str(source["chart"]), str(source.get("targetRevision") or ""))
