"""A case: the releases of one trial, as rendered from their sources. Rules read it next to the timeline."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from itertools import chain
from typing import TypeVar, cast

from msgspec import Struct
from msgspec.structs import replace

from seatrial.model.program import Program
from seatrial.model.resource import Body, Origin, Path, Place, Pointer, Ref, metadata
from seatrial.model.result import Consumer, NotRehearsed, Prerequisite, RenderedDifference
from seatrial.model.timeline import Rehearsal
from seatrial.model.trial import Operator

T = TypeVar("T")
RECORD_TYPE = "helm.sh/release.v1"
"""The type of the Secrets in which Helm stores the revisions of a release."""


class Resource(Struct, frozen=True, dict=True):
    """One object of a release, and its file."""

    ref: Ref
    body: Body
    origin: Origin
    overridden: tuple[tuple[str, str], ...] = ()
    """Hook annotations that are written twice: the key, and the value that the second one hides."""

    @property
    def file(self) -> str:
        return self.origin.file

    def place(self, *path: str | int) -> Pointer:
        """Points at the value at `path`, or at its nearest existing parent."""
        return Pointer(self.origin, path)


def once(of: Resource | Release | Rehearsal, what: str, make: Callable[[], T]) -> T:
    """What is computed of something that never changes, kept with it: rules ask for it many times."""
    kept = of.__dict__
    if what not in kept:
        kept[what] = make()
    return cast(T, kept[what])


class Vanished(Struct, frozen=True):
    """A template that rendered empty, because a value that may be set in several places is set in none."""

    place: Place
    """Location of the `if` that evaluated to false."""
    kinds: tuple[str, ...]
    """The kinds of the objects that it would have rendered."""
    values: tuple[str, ...]
    """`git.repoURL`: the values it read."""


class Pin(Struct, frozen=True, order=True):
    """A chart that is not at hand, whose version is known."""

    chart: str
    version: str
    source: str
    """Who says so: `Chart.lock of ./shop`."""
    installed: bool = True
    """False for a dependency that the values disable: then someone else installs it, often in that version."""


CHART = "Chart"
"""The kind that stands for the chart of a step, which is no object of the cluster."""


class AbsentChart(Struct, frozen=True):
    """A chart that is not at hand and that an object of the input installs."""

    chart: str
    """Its name; empty if it is a folder of a repository that is not at hand."""
    version: str = ""
    repository: str = ""
    """The address or the alias of its repository."""
    values: Body = {}
    """Those that the input gives it."""
    all_values: bool = True
    """Whether these are all: others may come from files that are not at hand."""
    by: Ref | None = None
    """The HelmRelease or Application; none for a dependency of the chart that a step deploys."""
    namespace: str = ""
    """The namespace that is created with it."""
    skips_crds: bool = False
    """Whether its crds/ folder is left out."""
    url: str = ""
    """Where the manifest is that a script applies instead of a chart."""
    part: bool = False
    """Whether it is a dependency of a chart that is at hand."""


class Brought(Struct, frozen=True):
    """An object that the input does not contain and that one of its objects is known to bring."""

    resource: Resource
    """Its place is that of the object that brings it."""
    by: Ref
    """A HelmRelease or Application; for a dependency of the chart that a step deploys, that chart."""
    chart: str
    """The chart that contains it; empty for a namespace, and for what is assumed as soon as its kind is served."""
    early: bool = False
    """Whether it comes before the other objects of `by`."""

    @property
    def source(self) -> str:
        """Who brings it: `chart keda of HelmRelease/keda/keda`."""
        if not self.chart:
            return str(self.by)
        what = self.chart if "://" in self.chart else f"chart {self.chart}"
        return what if self.by.kind == CHART else f"{what} of {self.by}"


class TriedHealthCheck(Struct, frozen=True, omit_defaults=True):
    """A health check for Argo CD that a release configures, and what it returns for example states."""

    ref: Ref
    """The ConfigMap or ArgoCD resource."""
    path: Path
    about: str
    """`group/Kind`, `Kind` for the core group, or a pattern of these."""
    verdicts: tuple[tuple[str, str], ...]
    """Each state, and the status that it returns; empty if it failed."""
    errors: tuple[tuple[str, str], ...] = ()
    """The states for which it failed, and how."""
    only_healthy: bool = False
    """Whether its text knows no other status than Healthy."""
    replaces: tuple[str, ...] = ()
    """Kinds whose check of Argo CD's own a pattern replaces."""


class Release(Struct, frozen=True, omit_defaults=True, dict=True):
    """One rendered revision of one app: what a source wants in the cluster."""

    name: str
    namespace: str
    source: str
    """As the user named it: `./v2`."""
    resources: tuple[Resource, ...]
    crds: tuple[Resource, ...] = ()
    """Objects of a chart's crds/ folder: installed once, never upgraded."""
    missing_dependencies: tuple[str, ...] = ()
    pins: tuple[Pin, ...] = ()
    """Charts that are not at hand and whose versions are known."""
    absent_charts: tuple[AbsentChart, ...] = ()
    """Charts that it installs and that are not at hand."""
    values: Body = {}
    """The user's values, without the chart's own."""
    vanished: tuple[Vanished, ...] = ()
    program: Program | None = None
    """The registrations of a Pulumi program, if the release is one."""
    left_out: tuple[Resource, ...] = ()
    """Hooks of its charts that a Pulumi program does not register, or that Argo CD never renders."""
    behind_lookup: tuple[Resource, ...] = ()
    """Objects of its charts that Argo CD never renders, because their templates want `lookup` to find something."""
    skipped_crds: tuple[Resource, ...] = ()
    """Objects of a chart's crds/ folder that an option such as `skipCrds` leaves out."""
    skipped: tuple[str, ...] = ()
    """Files of its folder that contain no Kubernetes object."""
    chart: str = ""
    """The name of its chart, as in Chart.yaml."""
    notes: tuple[str, ...] = ()
    """What was left out when it was rendered, each a sentence."""
    next_version: str = ""
    """The version to which its chart was raised in memory, to rehearse the upgrade to a next version."""

    def find(self, ref: Ref) -> Resource | None:
        crds = (crd for crd in self.crds if crd.ref == ref)
        return next(chain(self.named(ref), crds, self._generated(ref)), None)

    def named(self, ref: Ref) -> tuple[Resource, ...]:
        """There may be two objects of one name: a hook and a regular resource."""
        return tuple(self._by_name.get(ref, ()))

    def _generated(self, ref: Ref) -> Iterator[Resource]:
        """The object without a name from whose generateName this name was made, as those of Argo CD's hooks are."""
        for resource in self._unnamed:
            begins = str(metadata(resource.body).get("generateName") or "")
            if begins and ref.name.startswith(begins) and replace(resource.ref, name=ref.name) == ref:
                yield resource

    @cached_property
    def _unnamed(self) -> tuple[Resource, ...]:
        return tuple(resource for resource in self.resources if not resource.ref.name)

    @cached_property
    def _by_name(self) -> dict[Ref, list[Resource]]:
        found: dict[Ref, list[Resource]] = {}
        for resource in self.resources:
            found.setdefault(resource.ref, []).append(resource)
        return found


class Case(Struct, frozen=True, omit_defaults=True):
    """The releases of a trial, one for each step that has a source, for one set of values."""

    name: str
    """The values file of the case (`ci/ha-values.yaml`), or empty for the default one."""
    releases: tuple[Release | None, ...]
    """By step: what it deploys. For a rollback, the release of the target revision."""
    before: Release | None = None
    """What is deployed before the first step."""
    assumed: tuple[Prerequisite, ...] = ()
    """Prerequisites: what the releases need and do not contain."""
    absent: tuple[Prerequisite, ...] = ()
    """The same, where the user says that it is not in the cluster: it is not assumed."""
    brought: tuple[Brought, ...] = ()
    """The same, where an object of the input is known to bring it: it is not there at first."""
    missing_dependencies: tuple[str, ...] = ()
    """Charts that Chart.yaml lists and that are missing."""
    differences: tuple[RenderedDifference, ...] = ()
    """Objects that differ between renderings of one chart."""
    consumer: Consumer | None = None
    """The chart of this case, if the input is a library."""
    operators: tuple[Operator, ...] = ()
    """The operators that the trial describes."""
    notes: tuple[str, ...] = ()
    """Notes on what was assumed."""
    not_rehearsed: tuple[NotRehearsed, ...] = ()
    """The parts of the input that were not rehearsed."""
    health_checks: tuple[TriedHealthCheck, ...] = ()
    """Health checks for Argo CD that the releases configure."""
    hollow: bool = False
    """Whether all that was rehearsed are objects of the engine itself: nothing that they stand for is on disk."""

    def is_assumed(self, ref: Ref) -> bool:
        """Whether the object was created before the first step because no release contains it."""
        return any(one.ref == ref for one in self.assumed)

    def written(self, step: int, ref: Ref) -> Resource | None:
        """The object of this name in the release of this step, or in the newest release before it."""
        for release in reversed((self.before, *self.releases[: step + 1])):
            if release is not None and (found := release.find(ref)):
                return found
        return None

    def brought_by(self, ref: Ref) -> Iterator[Resource]:
        """What an object of the input is known to bring."""
        return (one.resource for one in self.brought if one.by == ref)

    def bringer(self, ref: Ref) -> Brought | None:
        """Who is known to bring an object that no release contains."""
        return next((one for one in self.brought if one.resource.ref == ref), None)

    def all_resources(self) -> Iterator[Resource]:
        return _resources((self.before, *self.releases))

    def given_resources(self) -> Iterator[Resource]:
        """All resources of the input as it is, without those of a simulated next version."""
        return _resources(one for one in (self.before, *self.releases) if one and not one.next_version)


def _resources(releases: Iterable[Release | None]) -> Iterator[Resource]:
    return (r for release in releases if release for r in (*release.resources, *release.crds))
