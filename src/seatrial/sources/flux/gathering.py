"""All Kustomizations and HelmReleases among objects, and those that Kustomizations create, recursively.

Each with its built path or rendered chart, or the reason why there is none. Does not know what Flux does with them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import PurePath

from msgspec import Struct
from msgspec.structs import replace

from seatrial.model.errors import CannotContinue
from seatrial.model.release import AbsentChart, Pin, Release, Resource
from seatrial.model.resource import Body, Ref, dig, metadata, name_of, ref_of
from seatrial.sources.charts.chart import ChartSource
from seatrial.sources.charts.lacking import pins_of
from seatrial.sources.flux.building import (
    SOURCE_GROUP,
    FluxSources,
    build,
    chart_of,
    is_path_of,
    named_chart,
    render_release,
    values_of,
)
from seatrial.sources.following import follow
from seatrial.sources.manifests.objects import refuse_misfits
from seatrial.sources.repos import SourceNotFound

KUSTOMIZE_GROUP = "kustomize.toolkit.fluxcd.io"
HELM_GROUP = "helm.toolkit.fluxcd.io"
OWN_GROUPS = (
    *(KUSTOMIZE_GROUP, HELM_GROUP, SOURCE_GROUP, "source.extensions.fluxcd.io"),
    *("notification.toolkit.fluxcd.io", "image.toolkit.fluxcd.io"),
)
ACTED_ON = ((KUSTOMIZE_GROUP, "Kustomization"), (HELM_GROUP, "HelmRelease"))
GO_WITH_THEM = ("Namespace", "Secret", "ConfigMap")
"""Kinds that usually accompany Flux's own objects in the first folder of a cluster."""


class Built(Struct, frozen=True):
    """A Kustomization with the objects of its path."""

    body: Body
    resources: tuple[Resource, ...] = ()
    error: str = ""
    """Why its path cannot be built."""
    absent: str = ""
    """Why its source is unknown."""


class Charted(Struct, frozen=True):
    """A HelmRelease with its chart."""

    body: Body
    chart: ChartSource | None = None
    values: Body = {}
    release: Release | None = None
    """The rendered chart."""
    error: str = ""
    absent: str = ""


class FoundFlux(Struct, frozen=True):
    """The result so far."""

    kustomizations: dict[Ref, Built] = {}
    releases: dict[Ref, Charted] = {}
    resources: list[Resource] = []
    crds: list[Resource] = []
    skipped_crds: list[Resource] = []
    pins: list[Pin] = []
    absent_charts: list[AbsentChart] = []
    notes: list[str] = []
    not_rehearsed: list[str] = []


def gather(resources: Iterable[Resource], known: FluxSources) -> FoundFlux:
    """Find all Kustomizations and HelmReleases among objects, recursively."""
    gathering = _FluxSearch(known)
    follow(gathering.own(resources), gathering.expand, "Kustomizations and HelmReleases")
    return gathering.found


def beginning(release: Release) -> list[Resource]:
    """The objects to apply first: all, if there are only Flux's own objects, else those of `flux bootstrap`.

    These are the Kustomization of this very folder and the objects next to it.
    """
    if any(map(is_acted_on, release.resources)) and all(map(_is_beginning, release.resources)):
        return list(release.resources)
    own = [r for r in release.resources if r.ref.kind == "Kustomization" and is_path_of(r.body, release.source)]
    beside = {str(PurePath(resource.file).parent) for resource in own}
    return [resource for resource in release.resources if str(PurePath(resource.file).parent) in beside]


def is_acted_on(resource: Resource) -> bool:
    return (resource.ref.group, resource.ref.kind) in ACTED_ON


def _is_beginning(resource: Resource) -> bool:
    return resource.ref.group in OWN_GROUPS or resource.ref.kind in GO_WITH_THEM


def is_of_flux(resource: Resource) -> bool:
    """Whether an object only matters to Flux, or is a Namespace."""
    return resource.ref.group in OWN_GROUPS or resource.ref.kind == "Namespace"


def at_home(resource: Resource) -> Body:
    """The object with its effective namespace."""
    if not resource.ref.namespace:
        return resource.body
    return {**resource.body, "metadata": {**metadata(resource.body), "namespace": resource.ref.namespace}}


class _FluxSearch:
    """The state of the search for Kustomizations and HelmReleases."""

    def __init__(self, known: FluxSources) -> None:
        self.known = known
        self.found = FoundFlux()

    def own(self, resources: Iterable[Resource]) -> Iterator[tuple[Ref, Resource]]:
        given = list(resources)
        refuse_misfits(given, OWN_GROUPS)
        return ((resource.ref, resource) for resource in given if is_acted_on(resource))

    def expand(self, ref: Ref, resource: Resource) -> Iterator[tuple[Ref, Resource]]:
        """Build a Kustomization and search its objects, or render the chart of a HelmRelease."""
        if ref.kind == "HelmRelease":
            self.found.releases[ref] = self._charted(at_home(resource))
            return
        built = self.found.kustomizations[ref] = self._built(at_home(resource))
        self.known.objects.update((one.ref, one.body) for one in built.resources)
        self.found.resources.extend(built.resources)
        yield from self.own(built.resources)

    def _built(self, body: Body) -> Built:
        try:
            built = build(body, self.known)
        except SourceNotFound as why:
            return Built(body, absent=str(why))
        except CannotContinue as why:
            return Built(body, error=str(why))
        self.found.not_rehearsed.extend(built.not_rehearsed)
        return Built(body, built.resources)

    def _charted(self, body: Body) -> Charted:
        try:
            chart = chart_of(body, self.known)
            values, notes = values_of(body, chart, self.known)
            rendered = render_release(body, chart, values, self.known)
        except SourceNotFound as why:
            absent = self._absent(body)
            self.found.pins.extend(pins_of(absent.chart, absent.version, f"HelmRelease {name_of(body)}"))
            self.found.absent_charts.append(absent)
            return Charted(body, absent=str(why))
        except CannotContinue as why:
            return Charted(body, error=str(why))
        self.found.notes.extend((*notes, *rendered.notes))
        self.found.resources.extend(rendered.resources)
        self.found.pins.extend(rendered.pins)
        self.found.absent_charts.extend(replace(one, by=ref_of(body)) for one in rendered.absent_charts)
        skips = dig(body, "spec", "install", "crds") == "Skip"
        (self.found.skipped_crds if skips else self.found.crds).extend(rendered.crds)
        return Charted(body, chart, values, rendered)

    def _absent(self, body: Body) -> AbsentChart:
        """What a HelmRelease says of a chart that is not at hand."""
        named = named_chart(body, self.known)
        install = dig(body, "spec", "install") or {}
        home = str(dig(body, "spec", "targetNamespace") or metadata(body).get("namespace") or "")
        is_folder = named.source.get("kind") in ("GitRepository", "Bucket")
        return AbsentChart(
            "" if is_folder else named.name.rstrip("/").rpartition("/")[2],
            named.revision,
            named.url,
            dig(body, "spec", "values") or {},
            all_values=not dig(body, "spec", "valuesFrom") and not dig(body, "spec", "chart", "spec", "valuesFiles"),
            by=ref_of(body),
            namespace=home if install.get("createNamespace") is True else "",
            skips_crds=install.get("crds") == "Skip",
        )
