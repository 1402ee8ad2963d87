"""Charts and YAML inside Pulumi programs. Fetches nothing: a chart that is not on disk is unknown."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from seatrial.helm import hooks
from seatrial.kinds.tables.shapes import fitted
from seatrial.model.errors import CannotContinue
from seatrial.model.program import HELM_RELEASE, Registration, short
from seatrial.model.release import Release, Resource
from seatrial.model.resource import Body, Origin, metadata
from seatrial.sources.charts.chart import open_chart
from seatrial.sources.charts.conditions import asks_for_kinds, generates_values
from seatrial.sources.charts.rendering import render
from seatrial.sources.charts.values import merged, read_values
from seatrial.sources.fetching import get_chart
from seatrial.sources.files import shown, within
from seatrial.sources.manifests.objects import defined_scopes, objects_in, resources
from seatrial.sources.manifests.reading import read_manifests
from seatrial.sources.pulumi.values import UNKNOWN
from seatrial.text.source import Text
from seatrial.text.yamlfile import documents

TESTS = ("test", "test-success", "test-failure")


class Charts(Struct, frozen=True):
    """The local copies of a program's charts."""

    folder: Path
    given: dict[str, str] = {}
    """Paths by name, from --chart NAME=PATH."""
    kube_version: str = ""
    api_versions: tuple[str, ...] = ()
    root: Path = Path()
    """The root of the project that contains the program."""

    def path(self, named: str, version: str = "") -> str | None:
        """The path of a chart: from --chart, relative to the program, vendored, or in the cache of Helm."""
        last = named.rstrip("/").rpartition("/")[2]
        if named in self.given or last in self.given:
            return self.given.get(named) or self.given[last]
        if not last:
            return None
        local = self.folder / named
        if (local / "Chart.yaml").is_file():
            return self._near(local, f"pass --chart {last}={named} to allow it")
        return next(self._pulled(last, version), None)

    def _pulled(self, name: str, version: str) -> Iterator[str]:
        """Copies of the version that a program pins: in charts/ of the project, or an archive that Helm has fetched."""
        above = [one for one in (self.folder, *self.folder.parents) if one == self.root or self.root in one.parents]
        for folder in above or [self.folder]:
            vendored = folder / "charts" / name
            if (vendored / "Chart.yaml").is_file() and version in ("", open_chart(str(vendored)).version):
                yield self._near(vendored)
        cached = _helm_cache() / "repository" / f"{name}-{version}.tgz"
        if version and cached.is_file():
            yield str(cached)

    def render(
        self,
        named: str,
        *,
        release: str,
        namespace: str,
        values: Body,
        version: str = "",
        also: Iterable[str] = (),
    ) -> Release | None:
        """A rendered chart; None if it is not on disk. `also` are further API versions that the cluster serves."""
        path = self.path(named, version)
        if path is None:
            return None
        chart = open_chart(_typed(path))
        return render(
            chart,
            values,
            release=release,
            namespace=namespace,
            kube_version=self.kube_version,
            api_versions=(*self.api_versions, *also),
        )

    def version(self, named: str, version: str = "") -> str:
        """The version of the chart on disk; a program may only have a version range."""
        path = self.path(named, version)
        return open_chart(_typed(path)).version if path is not None else ""

    def generates_values(self, named: str, version: str = "", *, looks: bool) -> bool:
        """Whether a chart on disk generates new values on every render."""
        path = self.path(named, version)
        return path is not None and generates_values(open_chart(_typed(path)).files, looks=looks)

    def asks_for_kinds(self, named: str, version: str = "") -> bool:
        """Whether a chart on disk asks which kinds the cluster serves."""
        path = self.path(named, version)
        return path is not None and asks_for_kinds(open_chart(_typed(path)).files)

    def values(self, inputs: Body) -> Body:
        """The values of a Chart or Release: from its files, overridden by those in the program."""
        found: Body = {}
        for entry in inputs.get("valueYamlFiles") or ():
            path = entry.get("path") if isinstance(entry, dict) else entry
            if isinstance(path, str):
                found = merged(found, read_values(self._near(self.folder / path)))
        own = inputs.get("values") or {}
        if not isinstance(own, dict):
            raise CannotContinue("read the values of a chart: not a mapping")
        return merged(found, own)

    def read_files(self, names: Iterable[Any], namespace: str) -> Iterator[Resource]:
        """The objects in files that the provider reads for the program; a name may be a glob pattern."""
        for name in map(str, names):
            one = self.folder / name
            for path in [one] if one.exists() else sorted(self.folder.glob(name)):
                yield from read_manifests(_typed(self._near(path)), namespace=namespace).resources

    def built(self, named: str, namespace: str) -> list[Resource] | None:
        """The objects of a kustomization; None if it is not on disk."""
        path = self.folder / named
        if not path.is_dir():
            return None
        return list(read_manifests(_typed(self._near(path)), namespace=namespace).resources)

    def _near(self, path: Path, remedy: str = "seatrial does not let a program read it") -> str:
        """A path that a program passes to a provider, if it is inside of the project or the current folder."""
        here, home = Path.cwd(), Path.home().resolve()
        around = () if home.is_relative_to(here) else (here,)
        return str(within(path, self.root, *around, named=str(path), remedy=remedy))


def as_v3_chart(release: Release, *, crds: bool, tests: bool) -> Iterator[Resource]:
    """All objects at once: hooks are ordinary objects, except tests (`provider/pkg/helm/template.go`)."""
    if crds:
        yield from release.crds
    yield from (r for r in release.resources if not hooks.is_hook(r.body))
    for resource in release.resources:
        if hooks.is_hook(resource.body) and (tests or not any(e in TESTS for e in hooks.events_of(resource.body))):
            yield resource


def as_v4_chart(release: Release, *, crds: bool) -> Iterator[Resource]:
    """CRDs and regular resources; hooks are dropped."""
    if crds:
        yield from release.crds
    yield from (r for r in release.resources if not hooks.is_hook(r.body))


def dropped_hooks(release: Release) -> Iterator[Resource]:
    """The hooks that a `v4.Chart` drops, without tests."""
    dropped = (r for r in release.resources if hooks.is_hook(r.body))
    return (r for r in dropped if not all(event in TESTS for event in hooks.events_of(r.body)))


def in_namespace(resource: Resource) -> Resource:
    """The object with its namespace in the body."""
    if not resource.ref.namespace:
        return resource
    body = {**resource.body, "metadata": {**metadata(resource.body), "namespace": resource.ref.namespace}}
    return replace(resource, body=body)


def decoded(text: str, namespace: str, file: str) -> list[Resource]:
    """The objects in YAML text that a program passes; their source lines are unknown."""
    source = Text(file, text)
    found = [one for document in documents(source) for one in objects_in(document, file, lambda d, offset: d.place())]
    return [replace(resource, origin=Origin("")) for resource in resources(found, namespace, defined_scopes(found))]


def chart_options(args: Body) -> Body:
    """The options of a `v3.Chart`, as its SDK sends them."""
    try:
        options = json.loads(args["jsonOpts"])
    except (KeyError, TypeError, ValueError):
        options = None
    if not isinstance(options, dict):
        raise CannotContinue("read the chart options of the program: jsonOpts is not a JSON object")
    return options


def fitting(one: Registration) -> Registration:
    """A Release or a component of the provider with inputs of the right types. What is unknown counts as not set."""
    if one.type != HELM_RELEASE and not one.remote:
        return one
    inputs, wrong = fitted(one.inputs, "pulumi.HelmInputs")
    for misfit in wrong:
        if misfit.value != UNKNOWN:
            raise CannotContinue(f"{one.place or short(one.urn)}: read {short(one.urn)}: {misfit}")
    return replace(one, inputs=inputs)


def absent_chart(who: str, named: str, options: Body) -> str:
    """A chart that is not on disk, and the command that gets it from the repository in the options of its resource."""
    fetched = options.get("repositoryOpts") or options.get("fetch_opts") or {}
    repo = str(fetched.get("repo") or "")
    alias = str(options.get("repo") or "")
    chart = f"{alias}/{named}" if alias and not repo else named
    pinned = f"{named} {version_of(options)}".strip()
    return f"{who}: the chart {pinned} is not on disk. {get_chart(chart, repo, version_of(options))}"


def version_of(options: Body) -> str:
    """The version that the options of a chart pin; a `v4.Chart` has `repositoryOpts`, a `v3.Chart` `fetch_opts`."""
    fetched = options.get("repositoryOpts") or options.get("fetch_opts") or {}
    return str(options.get("version") or fetched.get("version") or "")


def _helm_cache() -> Path:
    """The folder in which Helm keeps charts that it has fetched (`helm env HELM_CACHE_HOME`)."""
    own, caches = os.environ.get("HELM_CACHE_HOME"), os.environ.get("XDG_CACHE_HOME")
    return Path(own) if own else Path(caches or Path.home() / ".cache") / "helm"


def _typed(path: str) -> str:
    """A path as the user would type it: relative if it is below the current folder."""
    try:
        return shown(str(Path(path).resolve().relative_to(Path.cwd())))
    except ValueError:
        return shown(path)
