"""All Applications among objects: given directly, created by ApplicationSets, or nested, to any depth.

Each with its rendered sources, or the reason why there are none. Does not know what Argo CD does with them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from seatrial.kinds.operators.argocd import GROUP
from seatrial.kinds.tables.shapes import shaped
from seatrial.model.release import AbsentChart, Pin, Release, Resource
from seatrial.model.resource import Body, Ref, dig, group_of, listed, metadata, ref_of
from seatrial.sources.argocd.applications import render_application
from seatrial.sources.argocd.applicationsets import applications_of
from seatrial.sources.argocd.helm import absent_source
from seatrial.sources.charts.lacking import pins_of
from seatrial.sources.following import follow
from seatrial.sources.manifests.objects import refuse_misfits
from seatrial.sources.repos import Repos, SourceNotFound

HOME = "argocd"
"""The usual namespace of Argo CD."""
IN_CLUSTER = "https://kubernetes.default.svc"

Named = tuple[Ref, Body]


class Application(Struct, frozen=True):
    """An Application with its rendered sources."""

    body: Body
    release: Release | None = None
    error: str = ""
    """The error of Argo CD if its sources cannot be rendered."""
    absent: str = ""
    """Why its sources are unknown."""


class FoundApplications(Struct, frozen=True):
    """The result so far."""

    applications: dict[Ref, Application] = {}
    sets: dict[Ref, tuple[Body, tuple[Body, ...]]] = {}
    """ApplicationSets, and the Applications that each creates."""
    projects: dict[str, Body] = {}
    resources: list[Resource] = []
    """The objects of all Applications."""
    skipped_crds: list[Resource] = []
    pins: list[Pin] = []
    absent_charts: list[AbsentChart] = []
    notes: list[str] = []
    not_rehearsed: list[str] = []
    roots: list[Ref] = []
    """The Applications that no other Application creates."""
    given: list[Ref] = []
    """The ApplicationSets that no Application creates."""


def gather(
    resources: Iterable[Resource], repos: Repos, *, root: Ref | None = None, **options: Any
) -> FoundApplications:
    """Find all Applications among objects, recursively; `root` is the Application whose source they are."""
    gathering = _ApplicationSearch(repos, options)
    found = gathering.found
    first = list(gathering.look_at(resources))
    found.roots.extend(ref for ref, _ in first)
    found.given.extend(found.sets)
    for way in follow(first, gathering.expand, "Applications", trail=(root,) if root else ()):
        names = " -> ".join(ref.name for ref in way)
        found.notes.append(f"argocd: Applications that make each other: {names}")
    return found


def is_project(body: Body) -> bool:
    return body.get("kind") == "AppProject" and group_of(str(body.get("apiVersion", ""))) == GROUP


class _ApplicationSearch:
    """The state of the search for Applications."""

    def __init__(self, repos: Repos, options: dict[str, Any]) -> None:
        self.repos, self.options = repos, options
        self.found = FoundApplications()
        self.clusters: dict[Ref, str] = {}
        """The cluster of each object."""

    def look_at(self, resources: Iterable[Resource]) -> Iterator[Named]:
        """The Applications among objects, and those that their ApplicationSets create. Records AppProjects."""
        given = list(resources)
        refuse_misfits(given, (GROUP,))
        for resource in given:
            if is_project(resource.body):
                self.found.projects[resource.ref.name] = resource.body
            if resource.ref.group != GROUP:
                continue
            body = _at_home(resource)
            if resource.ref.kind == "Application":
                yield _ref(body), body
            elif resource.ref.kind == "ApplicationSet":
                yield from self._made_by(resource.ref, body)

    def expand(self, ref: Ref, body: Body) -> Iterator[Named]:
        """Render an Application, and find the Applications among its objects."""
        try:
            rendered = render_application(body, self.repos, **self.options)
            self._place(body, rendered.release)
        except SourceNotFound as why:
            self.found.not_rehearsed.append(f"{ref} (assumed to sync): {why}")
            self.found.applications[ref] = Application(body, absent=str(why))
            for source in _sources(body):
                absent = absent_source(source, ref, body)
                self.found.pins.extend(pins_of(absent.chart, absent.version, str(ref)))
                self.found.absent_charts.append(absent)
            return
        self.found.applications[ref] = Application(body, rendered.release, rendered.error)
        self.found.notes.extend(self._from_checkout(ref, body))
        if rendered.release is not None:
            self.found.notes.extend(rendered.release.notes)
            self.found.resources.extend(rendered.release.resources)
            self.found.skipped_crds.extend(rendered.release.skipped_crds)
            self.found.pins.extend(rendered.release.pins)
            self.found.absent_charts.extend(replace(one, by=ref) for one in rendered.release.absent_charts)
            yield from self.look_at(rendered.release.resources)

    def _from_checkout(self, ref: Ref, application: Body) -> Iterator[str]:
        """The notes on sources that are the checkout of the input."""
        for source in _sources(application):
            if self.repos.is_checkout(url := str(source.get("repoURL") or "")):
                revision = str(source.get("targetRevision") or "HEAD")
                tree = f"its working tree is rehearsed, whatever {revision} (targetRevision) contains"
                yield f"argocd: {ref}: its source {url} is a remote of this checkout; {tree}"

    def _place(self, application: Body, release: Release | None) -> None:
        """Raise `SourceNotFound` for an object with the name of one on another cluster: one cluster is rehearsed."""
        where = dig(application, "spec", "destination") or {}
        cluster = str(where.get("server") or where.get("name") or IN_CLUSTER)
        refs = [resource.ref for resource in release.resources] if release is not None else []
        for ref in refs:
            other = self.clusters.get(ref, cluster)
            if other != cluster:
                raise SourceNotFound(f"it goes to {cluster}, and its {ref} is another one than that of {other}")
        self.clusters |= dict.fromkeys(refs, cluster)

    def _made_by(self, named: Ref, body: Body) -> Iterator[Named]:
        """The Applications that a set creates; it creates none of those with a duplicate name."""
        try:
            made = [shaped(one) for one in applications_of(body, self.repos)]
        except SourceNotFound as why:
            self.found.not_rehearsed.append(f"the Applications of {named}: {why}")
            return
        own = _ref(body)
        counts = Counter(map(_ref, made))
        for ref in (ref for ref, count in counts.items() if count > 1):
            said = f"ApplicationSet {own.name} contains applications with duplicate name: {ref.name}"
            self.found.notes.append(f"argocd: {own} does not make {ref}: {said}")
        unique = tuple(one for one in made if counts[_ref(one)] == 1)
        self.found.sets[own] = body, unique
        yield from ((_ref(one), one) for one in unique)


def _sources(application: Body) -> list[Body]:
    return listed(application, "spec", "sources") or [dig(application, "spec", "source") or {}]


def _at_home(resource: Resource) -> Body:
    """The object with its effective namespace."""
    home = resource.ref.namespace or HOME
    return {**resource.body, "metadata": {**metadata(resource.body), "namespace": home}}


def _ref(application: Body) -> Ref:
    return ref_of(application, namespace=HOME)
