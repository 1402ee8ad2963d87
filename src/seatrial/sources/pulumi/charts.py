"""Charts and YAML inside Pulumi programs become objects. Fetches nothing: what is not on disk is unknown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from seatrial.helm import hooks
from seatrial.model.errors import CannotContinue
from seatrial.model.release import Release, Resource
from seatrial.model.resource import Body, Origin, metadata
from seatrial.sources.charts.chart import open_chart
from seatrial.sources.charts.gates import makes_up
from seatrial.sources.charts.rendering import render
from seatrial.sources.charts.values import merged, read_values
from seatrial.sources.files import shown
from seatrial.sources.manifests.objects import defined_scopes, objects_in, resources
from seatrial.sources.manifests.reading import read_manifests
from seatrial.text.source import Text
from seatrial.text.yamlfile import documents

TESTS = ("test", "test-success", "test-failure")


class Charts(Struct, frozen=True):
    """Where the charts of a program are."""

    folder: Path
    given: dict[str, str] = {}
    """By name: what the user said with --chart NAME=PATH."""
    kube_version: str = ""
    api_versions: tuple[str, ...] = ()
    root: Path = Path()
    """The project that the program is a part of."""

    def path(self, named: str) -> str | None:
        """Where the chart that a program calls so lies: as the user says, or beside the program."""
        last = named.rstrip("/").rpartition("/")[2]
        if named in self.given or last in self.given:
            return self.given.get(named) or self.given[last]
        local = self.folder / named
        if not named or not (local / "Chart.yaml").is_file():
            return None
        return self._near(local, f"--chart {last}={named} has it read all the same")

    def render(
        self, named: str, *, release: str, namespace: str, values: Body, also: Iterable[str] = ()
    ) -> Release | None:
        """What a chart renders to; None where it is not on disk. `also` are versions that the cluster serves then."""
        path = self.path(named)
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

    def version(self, named: str) -> str:
        """Which version of a chart is on disk; a program says at most which would do."""
        path = self.path(named)
        return open_chart(_typed(path)).version if path is not None else ""

    def makes_up(self, named: str, *, looks: bool) -> bool:
        """Whether a chart that is on disk renders to other values each time."""
        path = self.path(named)
        return path is not None and makes_up(open_chart(_typed(path)).files, looks=looks)

    def values(self, inputs: Body) -> Body:
        """The values of a Chart or Release: its files, and over them those in the program."""
        found: Body = {}
        for entry in inputs.get("valueYamlFiles") or ():
            path = entry.get("path") if isinstance(entry, dict) else entry
            if isinstance(path, str):
                found = merged(found, read_values(self._near(self.folder / path)))
        own = inputs.get("values") or {}
        if not isinstance(own, dict):
            raise CannotContinue("the values of a chart are a mapping")
        return merged(found, own)

    def read_files(self, names: Iterable[Any], namespace: str) -> Iterator[Resource]:
        """The objects of files that the provider reads for the program; a name may be a pattern."""
        for name in map(str, names):
            one = self.folder / name
            for path in [one] if one.exists() else sorted(self.folder.glob(name)):
                yield from read_manifests(_typed(self._near(path)), namespace=namespace).resources

    def built(self, named: str, namespace: str) -> list[Resource] | None:
        """What a kustomization beside the program makes; None where it is not on disk."""
        path = self.folder / named
        if not path.is_dir():
            return None
        return list(read_manifests(_typed(self._near(path)), namespace=namespace).resources)

    def _near(self, path: Path, remedy: str = "seatrial reads nothing there for a program") -> str:
        """A path that a program gives to a provider, if it is its business: in the project, or where we are."""
        real, here, home = path.resolve(), Path.cwd(), Path.home().resolve()
        around = () if home.is_relative_to(here) else (here,)
        if not any(real.is_relative_to(one) for one in (self.root, *around)):
            raise CannotContinue(f"{path} lies outside of {self.root}; {remedy}")
        return str(path)


def as_v3_chart(release: Release, *, crds: bool, tests: bool) -> Iterator[Resource]:
    """Every object at once: hooks are objects like all others, but for tests (`provider/pkg/helm/template.go`)."""
    if crds:
        yield from release.crds
    plain = [r for r in release.resources if not hooks.is_hook(r.body)]
    yield from plain
    for resource in release.resources:
        if hooks.is_hook(resource.body) and (tests or not any(e in TESTS for e in hooks.events_of(resource.body))):
            yield resource


def as_v4_chart(release: Release, *, crds: bool) -> Iterator[Resource]:
    """Definitions and plain objects; hooks are dropped."""
    if crds:
        yield from release.crds
    yield from (r for r in release.resources if not hooks.is_hook(r.body))


def dropped_hooks(release: Release) -> Iterator[Resource]:
    """The hooks that a `v4.Chart` drops, tests left aside."""
    dropped = (r for r in release.resources if hooks.is_hook(r.body))
    return (r for r in dropped if not all(event in TESTS for event in hooks.events_of(r.body)))


def in_namespace(resource: Resource) -> Resource:
    """The object with the namespace that it is made in."""
    if not resource.ref.namespace:
        return resource
    body = {**resource.body, "metadata": {**metadata(resource.body), "namespace": resource.ref.namespace}}
    return replace(resource, body=body)


def decoded(text: str, namespace: str, file: str) -> list[Resource]:
    """The objects of a YAML text that a program gives; where that is written, only the program knows."""
    source = Text(file, text)
    found = [one for document in documents(source) for one in objects_in(document, file, lambda d, offset: d.place())]
    return [replace(resource, origin=Origin("")) for resource in resources(found, namespace, defined_scopes(found))]


def _typed(path: str) -> str:
    """As the user would type it: relative to where they are, if it is below."""
    try:
        return shown(str(Path(path).resolve().relative_to(Path.cwd())))
    except ValueError:
        return shown(path)
