"""From Flux Kustomizations and HelmReleases to objects: their sources, found on disk, built and rendered.

Builds as kustomize-controller does: a folder without a kustomization.yaml means all manifests in and below it.
Nothing is fetched and nothing decrypted.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from seatrial.model import lazy_re
from seatrial.model.errors import CannotContinue, NothingToCheck
from seatrial.model.options import ValueFlags
from seatrial.model.release import Release, Resource
from seatrial.model.resource import Body, Ref, dig, labels_of, listed, metadata, name_of, version_of
from seatrial.sources import disk
from seatrial.sources.charts.chart import ChartSource, open_chart
from seatrial.sources.charts.rendering import render
from seatrial.sources.charts.values import merged, merged_values, values_in
from seatrial.sources.fetching import get_chart, get_repo
from seatrial.sources.files import STDIN, added_below, instead_of, project_of, read_text, roots_of, shown, within
from seatrial.sources.flux.envsubst import BadSubstitution, expand
from seatrial.sources.manifests import kustomize
from seatrial.sources.manifests.reading import EXTENSIONS, may_hold_objects, read_manifests
from seatrial.sources.repos import Repos, SourceNotFound, chart_in
from seatrial.text.source import Text

SOURCE_GROUP = "source.toolkit.fluxcd.io"
UNKNOWN = "seatrial-unknown-"
"""Placeholder in a manifest for an unknown variable."""
EDITS = ("patches", "images", "components", "namePrefix", "nameSuffix")
"""Fields that kustomize-controller copies into the kustomization before it builds it."""
SUBSTITUTE = "kustomize.toolkit.fluxcd.io/substitute"
_BETWEEN_OBJECTS = lazy_re.compile(r"^(?=---)", re.M)
UNREADABLE = "seatrial-unreadable-"
"""Placeholder for a variable with a syntax error."""
_WORDS = lazy_re.compile(rf"{UNREADABLE}(\w+)-")


class BuiltPath(Struct, frozen=True):
    resources: tuple[Resource, ...]
    not_rehearsed: tuple[str, ...] = ()


class Shelf(Struct, frozen=True):
    """A cache of builds, shared by the steps of a trial."""

    built: dict[bytes, BuiltPath] = {}
    copies: kustomize.FolderCopies = msgspec.field(default_factory=kustomize.FolderCopies)


class FluxSources(Struct, frozen=True):
    """Where sources are found: `--repo`, `--chart`, the checkout of the input, and objects found so far."""

    repos: Repos
    charts: dict[str, str]
    beside: str
    objects: dict[Ref, Body]
    options: dict[str, Any] = {}
    shelf: Shelf = msgspec.field(default_factory=Shelf)

    def find(self, reference: Body, namespace: str) -> Body | None:
        """The source object, ConfigMap or Secret that a reference names."""
        kind, group = str(reference.get("kind") or ""), SOURCE_GROUP
        if kind in ("ConfigMap", "Secret"):
            group = ""
        home = str(reference.get("namespace") or namespace)
        return self.objects.get(Ref(kind, home, str(reference.get("name") or ""), group))


def read_folder(path: str, namespace: str = "default", *, release: str = "") -> Release:
    """The objects that Flux finds in a folder, or those in a file."""
    if path == STDIN or not disk.is_dir(Path(path)):
        return read_manifests(path, namespace=namespace, release=release)
    skipped: list[str] = []
    found = tuple(tree(Path(path), release, namespace, skipped=skipped))
    if not found:
        raise NothingToCheck(f"{shown(path)}: contains no Kubernetes object")
    return Release(release, namespace, path, found, skipped=tuple(skipped))


def is_path_of(kustomization: Body, folder: str) -> bool:
    """Whether a folder is the path of a Kustomization, judged by folder names."""
    path = str(dig(kustomization, "spec", "path") or "").removeprefix("./").strip("/")
    return bool(path) and f"/{disk.resolved(Path(folder)).as_posix()}".endswith(f"/{path}")


def build(kustomization: Body, known: FluxSources) -> BuiltPath:
    """The objects of a Kustomization. Raises `SourceNotFound` if its source is not on disk."""
    spec = kustomization.get("spec") or {}
    root, folder = _folder(kustomization, known)
    values, sure = _variables(kustomization, known)
    home = str(metadata(kustomization).get("namespace") or "default")
    key = msgspec.json.encode([name_of(kustomization), home, spec, values, str(disk.resolved(root))], order="sorted")
    built = known.shelf.built
    if key not in built:
        texts = _Substituted(values, sure=sure)
        namespace = str(spec.get("targetNamespace") or home)
        built[key] = _built(name_of(kustomization), namespace, spec, texts, (root, folder), known.shelf, sure=sure)
    return built[key]


def _built(
    name: str, namespace: str, spec: Body, texts: _Substituted, where: tuple[Path, Path], shelf: Shelf, *, sure: bool
) -> BuiltPath:
    root, folder = where
    if any(spec.get(field) for field in EDITS):
        edits = partial(_edited, spec=spec)
        release = kustomize.build(folder, name, namespace, texts, edits=edits, root=root, copies=shelf.copies)
        plain: Iterable[Resource] = release.resources
    else:
        plain = tree(folder, name, namespace, texts)
    found = [_placed(resource, spec) for resource in plain]
    _refuse_unreadable(found)
    left_out = [r for r in found if UNKNOWN in msgspec.json.encode(r.body).decode()]
    kept = tuple(r for r in found if r not in left_out)
    if sure or not left_out:
        return BuiltPath(kept)
    named = ", ".join(str(resource.ref) for resource in left_out)
    return BuiltPath(kept, (f"{named} of Kustomization {name}: its postBuild variables are unknown",))


class NamedChart(Struct, frozen=True):
    """The chart that a HelmRelease names, and where it is."""

    name: str
    version: str
    """As `spec.chart` says; empty if it says none."""
    source: Body
    """Its GitRepository, HelmRepository, OCIRepository or Bucket; empty if there is none."""

    @property
    def url(self) -> str:
        return str(dig(self.source, "spec", "url") or "")

    @property
    def revision(self) -> str:
        return self.version or str(dig(self.source, "spec", "ref", "tag") or "")


def named_chart(release: Body, known: FluxSources) -> NamedChart:
    namespace = str(metadata(release).get("namespace") or "default")
    spec = dig(release, "spec", "chart", "spec") or {}
    reference = dig(release, "spec", "chartRef") or spec.get("sourceRef") or {}
    source = known.find(reference, namespace) or {}
    if reference.get("kind") == "HelmChart":
        spec = source.get("spec") or {}
        source = known.find(spec.get("sourceRef") or {}, namespace) or {}
    url = str(dig(source, "spec", "url") or "")
    name = str(spec.get("chart") or url.rpartition("/")[2])
    return NamedChart(name, str(spec.get("version") or ""), source)


def chart_of(release: Body, known: FluxSources) -> ChartSource:
    """The chart of a HelmRelease. Raises `SourceNotFound` if it is not on disk."""
    named = named_chart(release, known)
    name, url, source = named.name, named.url, named.source
    given = known.charts.get(name) or known.charts.get(name.rpartition("/")[2])
    if given:
        return open_chart(given)
    if str(source.get("kind")) in ("GitRepository", "Bucket") or not source:
        return open_chart(str(_within(known, url, name)[1]))
    root = known.repos.find(url)
    if root is None:
        raise SourceNotFound(f"chart {name} of {url} is not on disk. {get_chart(name, url, named.revision)}")
    return open_chart(str(chart_in(root, name, named.version)))


def values_of(release: Body, chart: ChartSource, known: FluxSources) -> tuple[Body, list[str]]:
    """The values of a HelmRelease: valuesFiles of the chart, valuesFrom in order, then its own values."""
    values: Body = {}
    notes: list[str] = []
    namespace = str(metadata(release).get("namespace") or "default")
    for file in listed(release, "spec", "chart", "spec", "valuesFiles"):
        path = within(Path(chart.path, str(file)), *roots_of(Path(chart.path)), named=f"valuesFiles: {file}")
        if disk.is_file(path):
            values = merged(values, merged_values(ValueFlags(files=(str(path),))))
    for entry in listed(release, "spec", "valuesFrom"):
        body = known.find(entry, namespace)
        key = str(entry.get("valuesKey") or "values.yaml")
        text = _value_in(body, key)
        if text is None and body is not None and not entry.get("optional"):
            named = f"{entry.get('kind')} chart values reference '{namespace}/{entry.get('name')}'"
            raise CannotContinue(f"could not resolve {named} with key '{key}': key not found")
        if text is None:
            if not entry.get("optional"):
                named = f"{entry.get('kind')}/{namespace}/{entry.get('name')}"
                notes.append(f"flux: {name_of(release)}: {named} was not found; rehearsed without its values")
        elif entry.get("targetPath"):
            values = merged(values, merged_values(ValueFlags(set=(f"{entry['targetPath']}={text}",))))
        else:
            values = merged(values, values_in(Text(f"{entry.get('kind')} {entry.get('name')}", text)))
    return merged(values, dig(release, "spec", "values") or {}), notes


def render_release(release: Body, chart: ChartSource, values: Body, known: FluxSources) -> Release:
    namespace = str(metadata(release).get("namespace") or "default")
    target = str(dig(release, "spec", "targetNamespace") or "")
    own = f"{target}-{name_of(release)}" if target else name_of(release)
    name = str(dig(release, "spec", "releaseName") or own)
    return render(chart, values, release=name, namespace=target or namespace, **known.options)


class _Substituted(Struct, frozen=True):
    """Replaces variables in text."""

    values: dict[str, str]
    sure: bool
    """Whether all variables are known: then an undefined one is empty."""

    def __call__(self, text: str) -> str:
        if self.sure and not self.values:
            return text
        return "".join(map(self._object, _BETWEEN_OBJECTS.split(text)))

    def _object(self, text: str) -> str:
        return text if f"{SUBSTITUTE}: disabled" in text else expand(text, self._value, _unreadable)

    def _value(self, name: str, has_default: bool) -> str:
        return self.values.get(name, "" if self.sure or has_default else f"{UNKNOWN}{name}")


def _unreadable(bad: BadSubstitution) -> str:
    return f"{UNREADABLE}{str(bad).replace(' ', '_')}-"


def _refuse_unreadable(resources: Iterable[Resource]) -> None:
    """Refuse syntax errors that are left after the build; those in comments are gone by then."""
    for resource in resources:
        found = _WORDS.search(msgspec.json.encode(resource.body).decode())
        if found:
            version = version_of(str(resource.body.get("apiVersion") or ""))
            kind = f"{resource.ref.kind}.{version}.{resource.ref.group or '[noGrp]'}"
            words = f"envsubst error: variable substitution failed: {found.group(1).replace('_', ' ')}"
            raise CannotContinue(f"post build failed for '{kind}/{resource.ref.name}': {words}")


def _variables(kustomization: Body, known: FluxSources) -> tuple[dict[str, str], bool]:
    """The known variables of postBuild, and whether all are known."""
    post = dig(kustomization, "spec", "postBuild") or {}
    namespace = str(metadata(kustomization).get("namespace") or "default")
    found: dict[str, str] = {}
    sure = True
    for entry in post.get("substituteFrom") or ():
        body = known.find(entry, namespace)
        sure = sure and (body is not None or bool(entry.get("optional")))
        found.update(_data(body))
    found.update({key: str(value) for key, value in (post.get("substitute") or {}).items()})
    return {key: value.replace("\n", "") for key, value in found.items()}, sure


def root_of(kustomization: Body, known: FluxSources) -> Path:
    """The root of a Kustomization's source."""
    return _folder(kustomization, known)[0]


def _folder(kustomization: Body, known: FluxSources) -> tuple[Path, Path]:
    """The root of a Kustomization's source, and its path in it."""
    namespace = str(metadata(kustomization).get("namespace") or "default")
    reference = dig(kustomization, "spec", "sourceRef") or {}
    path = str(dig(kustomization, "spec", "path") or ".")
    if reference.get("kind") == "ExternalArtifact":
        reference, path = _generated(reference, namespace, path.removeprefix("./"), known)
    source = known.find(reference, namespace)
    return _within(known, str(dig(source, "spec", "url") or ""), path)


def _generated(reference: Body, namespace: str, path: str, known: FluxSources) -> tuple[Body, str]:
    """The origin of a path that an ArtifactGenerator has copied: the source, and the path in it."""
    home, name = str(reference.get("namespace") or namespace), str(reference.get("name"))
    makers = (body for ref, body in known.objects.items() if (ref.kind, ref.namespace) == ("ArtifactGenerator", home))
    for maker in makers:
        sources = {f"@{one.get('alias')}/": one for one in listed(maker, "spec", "sources")}
        made = (one for one in listed(maker, "spec", "artifacts") if one.get("name") == name)
        for copy in (copy for one in made for copy in listed(one, "copy")):
            to = str(copy.get("to")).removeprefix("@artifact/").strip("/")
            alias = next((alias for alias in sources if str(copy.get("from")).startswith(alias)), None)
            if alias and (path == to or not to or path.startswith(f"{to}/")):
                origin = str(copy.get("from")).removeprefix(alias).partition("*")[0].strip("/")
                inside = path.removeprefix(to).strip("/")
                return {"namespace": home, **sources[alias]}, f"{origin}/{inside}".strip("/")
    raise SourceNotFound(f"source ExternalArtifact/{home}/{name} has no path {path} in the input")


def _edited(body: Body, spec: Body) -> Body:
    """A kustomization as kustomize-controller rewrites it (`WriteFile` of fluxcd/pkg/kustomize)."""
    edited = {**body, **{field: spec[field] for field in ("namePrefix", "nameSuffix") if spec.get(field)}}
    if spec.get("targetNamespace"):
        edited["namespace"] = spec["targetNamespace"]
    for field in ("patches", "components"):
        if spec.get(field):
            edited[field] = [*(body.get(field) or ()), *spec[field]]
    images = {str(one.get("name")): one for one in (*(body.get("images") or ()), *(spec.get("images") or ()))}
    return {**edited, "images": list(images.values())} if images else edited


def _within(known: FluxSources, url: str, path: str) -> tuple[Path, Path]:
    """A path in a repository, and the root: that of `--repo`, else the checkout of the input."""
    relative = path.removeprefix("./").strip("/")
    root = known.repos.find(url) if url else None
    if root is not None:
        found = root / relative
        if not (disk.exists(found) or added_below(found)) or not disk.resolved(found).is_relative_to(
            disk.resolved(root)
        ):
            raise CannotContinue(f"kustomization path not found: stat {shown(str(found))}: no such file or directory")
        return root, found
    beside = Path(known.beside)
    start = disk.resolved(beside if disk.is_dir(beside) else beside.parent)
    for folder in _around(start):
        found = folder / relative
        if (disk.is_dir(found) or added_below(found)) and disk.resolved(found).is_relative_to(folder):
            return folder, Path(shown(_near(found)))
    if not url:
        raise SourceNotFound("source is not in the input. To rehearse it: add --repo URL=PATH of its repository")
    raise SourceNotFound(f"source {url} is not on disk. {get_repo(url)}")


def _around(start: Path) -> Iterator[Path]:
    """Candidates for the root: parent folders up to the checkout or, without one, the current folder."""
    project = project_of(start)
    top = project if project != start or disk.exists(start / ".git") else Path.cwd()
    above = [folder for folder in (start, *start.parents) if folder.is_relative_to(top)] or [start]
    return reversed(above)


def _near(path: Path) -> str:
    """A path as the user would type it."""
    here = Path.cwd()
    return str(disk.resolved(path).relative_to(here)) if disk.resolved(path).is_relative_to(here) else str(path)


def tree(
    folder: Path,
    name: str,
    namespace: str,
    texts: Callable[[str], str] = str,
    skipped: list[str] | None = None,
    above: tuple[Path, ...] = (),
) -> Iterator[Resource]:
    """The objects of a folder: built from its kustomization, or all manifests, recursively.

    Files without an object are refused, as kustomize-controller does, or put into `skipped`.
    """
    if kustomize.is_kustomization(folder):
        yield from kustomize.build(folder, name, namespace, texts).resources
        return
    above = (*above, disk.resolved(folder))
    roots = roots_of(above[0])
    for entry in sorted(_entries(folder), key=lambda entry: entry.name):
        if disk.is_dir(entry) or (added_below(entry) and instead_of(entry) is None):
            if disk.resolved(within(entry, *roots)) in above:
                raise CannotContinue(f"{shown(str(entry))}: the symlink points to a folder that contains it")
            yield from tree(entry, name, namespace, texts, skipped, above)
        elif entry.suffix in EXTENSIONS and (disk.is_file(entry) or instead_of(entry) is not None):
            text = read_text(str(within(entry, *roots)), "read the manifests")
            if skipped is not None and not may_hold_objects(text):
                skipped.append(text.path)
                continue
            instead = {shown(str(entry)): texts(text.content)}
            try:
                yield from read_manifests(str(entry), namespace=namespace, release=name, instead=instead).resources
            except NothingToCheck:
                continue


def _entries(folder: Path) -> set[Path]:
    """What a folder contains, with files that are read although they are not on disk."""
    added = (path.relative_to(disk.resolved(folder)).parts[0] for path in added_below(folder))
    return {*(disk.entries(folder) if disk.is_dir(folder) else ()), *(folder / name for name in added)}


def _placed(resource: Resource, spec: Body) -> Resource:
    """An object in the target namespace, with the common labels and annotations.

    As in kustomize, a Namespace object is renamed to the target namespace.
    """
    meta = dict(metadata(resource.body))
    ref = resource.ref
    target = str(spec.get("targetNamespace") or "")
    if ref.namespace and target:
        meta["namespace"], ref = target, msgspec.structs.replace(ref, namespace=target)
    elif target and (ref.kind, ref.group) == ("Namespace", ""):
        meta["name"], ref = target, msgspec.structs.replace(ref, name=target)
    common = spec.get("commonMetadata") or {}
    if common.get("labels"):
        meta["labels"] = {**labels_of(resource.body), **common["labels"]}
    if common.get("annotations"):
        meta["annotations"] = {**(meta.get("annotations") or {}), **common["annotations"]}
    return msgspec.structs.replace(resource, ref=ref, body={**resource.body, "metadata": meta})


def _value_in(body: Body | None, key: str) -> str | None:
    return _data(body).get(key)


def _data(body: Body | None) -> dict[str, str]:
    if body is None:
        return {}
    plain: Iterable[tuple[str, str]] = ((str(k), str(v)) for k, v in (body.get("data") or {}).items())
    if body.get("kind") != "Secret":
        return dict(plain)
    decoded = {key: base64.b64decode(value).decode(errors="replace") for key, value in plain}
    return {**decoded, **{str(k): str(v) for k, v in (body.get("stringData") or {}).items()}}
