"""Kustomizations and HelmReleases of Flux become objects: their sources found on disk, built and rendered.

Builds as kustomize-controller does: a folder without a kustomization.yaml is one of all manifests in and below it.
Nothing is fetched and nothing decrypted.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from seatrial.case import Release, Resource
from seatrial.errors import CannotContinue, NothingToCheck
from seatrial.resource import Body, Ref, dig, labels_of, listed, metadata, name_of
from seatrial.sources import kustomize
from seatrial.sources.argocd import NotAtHand, Repos, chart_in
from seatrial.sources.chart import ChartSource, open_chart
from seatrial.sources.files import project_of, read_text, shown
from seatrial.sources.manifests import EXTENSIONS, read_manifests
from seatrial.sources.rendering import render
from seatrial.sources.values import ValueFlags, merged, merged_values, values_in
from seatrial.text import Text

SOURCE_GROUP = "source.toolkit.fluxcd.io"
UNKNOWN = "seatrial-unknown-"
"""Stands in a manifest for a variable that nobody here can know."""
NOT_BUILT = ("patches", "patchesStrategicMerge", "patchesJson6902", "images", "components", "namePrefix", "nameSuffix")
SUBSTITUTE = "kustomize.toolkit.fluxcd.io/substitute"
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::?[=-]([^}]*))?\}")


class Known(Struct, frozen=True):
    """Where sources are found: given folders, given charts, the checkout that holds the input, objects seen so far."""

    repos: Repos
    charts: dict[str, str]
    beside: str
    objects: dict[Ref, Body]
    options: dict[str, Any] = {}

    def find(self, reference: Body, namespace: str) -> Body | None:
        """The source object, or ConfigMap or Secret, that a reference names."""
        kind, group = str(reference.get("kind") or ""), SOURCE_GROUP
        if kind in ("ConfigMap", "Secret"):
            group = ""
        home = str(reference.get("namespace") or namespace)
        return self.objects.get(Ref(kind, home, str(reference.get("name") or ""), group))


class Built(Struct, frozen=True):
    resources: tuple[Resource, ...]
    notes: tuple[str, ...] = ()


def build(kustomization: Body, known: Known) -> Built:
    """The objects of a Kustomization. Raises `NotAtHand` where its source is not on disk."""
    name, spec = name_of(kustomization), kustomization.get("spec") or {}
    folder = _folder(kustomization, known)
    namespace = str(spec.get("targetNamespace") or metadata(kustomization).get("namespace") or "default")
    values, sure = _variables(kustomization, known)
    texts = _Substituted(values, on="postBuild" in spec)
    found = [_placed(resource, spec) for resource in _tree(folder, name, namespace, texts)]
    left_out = [r for r in found if UNKNOWN in msgspec.json.encode(r.body).decode()]
    notes = [f"flux: {name}: spec.{field} is not applied" for field in NOT_BUILT if spec.get(field)]
    if not sure and left_out:
        named = ", ".join(str(resource.ref) for resource in left_out)
        notes.append(f"flux: {name}: left out for variables of postBuild that are not known here: {named}")
    return Built(tuple(r for r in found if r not in left_out), tuple(notes))


def chart_of(release: Body, known: Known) -> ChartSource:
    """The chart of a HelmRelease. Raises `NotAtHand` where it is not on disk."""
    namespace = str(metadata(release).get("namespace") or "default")
    spec = dig(release, "spec", "chart", "spec") or {}
    reference = dig(release, "spec", "chartRef") or spec.get("sourceRef") or {}
    source = known.find(reference, namespace) or {}
    if reference.get("kind") == "HelmChart":
        spec = source.get("spec") or {}
        source = known.find(spec.get("sourceRef") or {}, namespace) or {}
    url = str(dig(source, "spec", "url") or "")
    name = str(spec.get("chart") or url.rpartition("/")[2])
    given = known.charts.get(name) or known.charts.get(name.rpartition("/")[2])
    if given:
        return open_chart(given)
    if str(source.get("kind")) in ("GitRepository", "Bucket") or not source:
        return open_chart(str(_within(known, url, name)))
    root = known.repos.find(url)
    if root is None:
        raise NotAtHand(f"the chart {name} of {url} is not at hand (--chart {name}=PATH)")
    return open_chart(str(chart_in(root, name, str(spec.get("version") or ""))))


def values_of(release: Body, chart: ChartSource, known: Known) -> tuple[Body, list[str]]:
    """What a HelmRelease gives to its chart: files of the chart, references in their order, its own values."""
    values: Body = {}
    notes: list[str] = []
    namespace = str(metadata(release).get("namespace") or "default")
    for file in listed(release, "spec", "chart", "spec", "valuesFiles"):
        path = Path(chart.path, str(file))
        if path.is_file():
            values = merged(values, merged_values(ValueFlags(files=(str(path),))))
    for entry in listed(release, "spec", "valuesFrom"):
        body = known.find(entry, namespace)
        text = _value_in(body, str(entry.get("valuesKey") or "values.yaml"))
        if text is None:
            if not entry.get("optional"):
                named = f"{entry.get('kind')}/{namespace}/{entry.get('name')}"
                notes.append(f"flux: {name_of(release)}: the values of {named} are not known here")
        elif entry.get("targetPath"):
            values = merged(values, merged_values(ValueFlags(set=(f"{entry['targetPath']}={text}",))))
        else:
            values = merged(values, values_in(Text(f"{entry.get('kind')} {entry.get('name')}", text)))
    return merged(values, dig(release, "spec", "values") or {}), notes


def render_release(release: Body, chart: ChartSource, values: Body, known: Known) -> Release:
    namespace = str(metadata(release).get("namespace") or "default")
    target = str(dig(release, "spec", "targetNamespace") or "")
    own = f"{target}-{name_of(release)}" if target else name_of(release)
    name = str(dig(release, "spec", "releaseName") or own)
    return render(chart, values, release=name, namespace=target or namespace, **known.options)


class _Substituted(Struct, frozen=True):
    """Texts with their variables replaced: `envsubst` of kustomize-controller, as far as names and defaults go."""

    values: dict[str, str]
    on: bool

    def __call__(self, text: str) -> str:
        if not self.on or f"{SUBSTITUTE}: disabled" in text:
            return text
        return _VARIABLE.sub(self._one, text)

    def _one(self, match: re.Match[str]) -> str:
        name, usual = match.group(1), match.group(2)
        if name in self.values:
            return self.values[name]
        return usual if usual is not None else f"{UNKNOWN}{name}"


def _variables(kustomization: Body, known: Known) -> tuple[dict[str, str], bool]:
    """The variables of postBuild that are known, and whether they are all: what is nowhere said is empty then."""
    post = dig(kustomization, "spec", "postBuild") or {}
    namespace = str(metadata(kustomization).get("namespace") or "default")
    found: dict[str, str] = {}
    sure = True
    for entry in post.get("substituteFrom") or ():
        body = known.find(entry, namespace)
        sure = sure and (body is not None or bool(entry.get("optional")))
        found.update(_data(body))
    found.update({key: str(value) for key, value in (post.get("substitute") or {}).items()})
    return found, sure


def _folder(kustomization: Body, known: Known) -> Path:
    reference = dig(kustomization, "spec", "sourceRef") or {}
    source = known.find(reference, str(metadata(kustomization).get("namespace") or "default"))
    url = str(dig(source, "spec", "url") or "")
    return _within(known, url, str(dig(kustomization, "spec", "path") or "."))


def _within(known: Known, url: str, path: str) -> Path:
    """A path of a repository: in the folder given for it, else in the checkout that holds the input."""
    relative = path.removeprefix("./").strip("/")
    root = known.repos.find(url) if url else None
    if root is not None:
        found = root / relative
        if not found.exists() or not found.resolve().is_relative_to(root.resolve()):
            raise CannotContinue(f"kustomization path not found: stat {shown(str(found))}: no such file or directory")
        return found
    start = Path(known.beside if Path(known.beside).is_dir() else Path(known.beside).parent)
    project = project_of(start.resolve())
    for folder in (start, *(start.resolve().parents if project != start.resolve() else (start.resolve().parent,))):
        found = folder / relative
        if relative and found.is_dir():
            return Path(shown(_near(found)))
        if folder.resolve() == project:
            break
    raise NotAtHand(f"{path} of {url or 'its source'} is not at hand (--repo {url or 'URL'}=PATH)")


def _near(path: Path) -> str:
    """A path as one would type it here."""
    here = Path.cwd()
    return str(path.resolve().relative_to(here)) if path.resolve().is_relative_to(here) else str(path)


def _tree(folder: Path, name: str, namespace: str, texts: _Substituted) -> Iterator[Resource]:
    """What a folder gives: what its kustomization builds, or all manifests, and folders below likewise."""
    if kustomize.is_kustomization(folder):
        yield from kustomize.build(folder, name, namespace, texts).resources
        return
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.is_dir():
            yield from _tree(entry, name, namespace, texts)
        elif entry.suffix in EXTENSIONS and entry.is_file():
            text = read_text(str(entry), "read the manifests")
            instead = {shown(str(entry)): texts(text.content)}
            try:
                yield from read_manifests(str(entry), namespace=namespace, release=name, instead=instead).resources
            except NothingToCheck:
                continue


def _placed(resource: Resource, spec: Body) -> Resource:
    """An object in the target namespace, with the labels and annotations that all are given."""
    meta = dict(metadata(resource.body))
    ref = resource.ref
    if ref.namespace:
        target = str(spec.get("targetNamespace") or ref.namespace)
        meta["namespace"], ref = target, msgspec.structs.replace(ref, namespace=target)
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
