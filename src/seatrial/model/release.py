"""A case: the releases one trial is about, as their authors wrote them. What rules read beside the timeline."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import chain

from msgspec import Struct

from seatrial.model.program import Program
from seatrial.model.resource import Body, Origin, Place, Pointer, Ref
from seatrial.model.result import Consumer, Difference, Prerequisite


class Resource(Struct, frozen=True):
    """One object of a release, and the file that it was read from."""

    ref: Ref
    body: Body
    origin: Origin

    @property
    def file(self) -> str:
        return self.origin.file

    def place(self, *path: str | int) -> Pointer:
        """Points at the value at `path`; where none is written, at its nearest parent that is."""
        return Pointer(self.origin, path)


class Vanished(Struct, frozen=True):
    """A template that came out empty, since a value that may stand in several places stands in none."""

    place: Place
    """Of the question that was answered with no."""
    kinds: tuple[str, ...]
    """Of the objects that it would have written."""
    values: tuple[str, ...]
    """`git.repoURL`: where the value was looked for."""


class Release(Struct, frozen=True, omit_defaults=True, dict=True):
    """One revision of one app, rendered: what a source says should be in the cluster."""

    name: str
    namespace: str
    source: str
    """How the user named it: `./v2`."""
    resources: tuple[Resource, ...]
    crds: tuple[Resource, ...] = ()
    """Objects of a chart's crds/ folder: installed once, never upgraded."""
    missing_dependencies: tuple[str, ...] = ()
    values: Body = {}
    """What the user gave beside the chart's own values."""
    vanished: tuple[Vanished, ...] = ()
    program: Program | None = None
    """What a Pulumi program registers, where the release is one."""
    left_out: tuple[Resource, ...] = ()
    """Hooks of its charts that the program does not register."""

    def find(self, ref: Ref) -> Resource | None:
        return next(chain(self.named(ref), (crd for crd in self.crds if crd.ref == ref)), None)

    def named(self, ref: Ref) -> tuple[Resource, ...]:
        """Of the name of one object there may be two: a hook and a plain one."""
        return tuple(self._by_name.get(ref, ()))

    @cached_property
    def _by_name(self) -> dict[Ref, list[Resource]]:
        found: dict[Ref, list[Resource]] = {}
        for resource in self.resources:
            found.setdefault(resource.ref, []).append(resource)
        return found


class Case(Struct, frozen=True, omit_defaults=True):
    """The releases of a trial, one for each step that has a source, under one set of values."""

    name: str
    """The values file that makes the case (`ci/ha-values.yaml`), or empty for the plain one."""
    releases: tuple[Release | None, ...]
    """By step: what it deploys. For a rollback that is the release of the revision it goes back to."""
    before: Release | None = None
    """What is deployed when the first step begins."""
    assumed: tuple[Prerequisite, ...] = ()
    """What the releases need and do not bring."""
    missing_dependencies: tuple[str, ...] = ()
    """Charts that Chart.yaml lists and that are not there."""
    differences: tuple[Difference, ...] = ()
    """Objects that are not the same in every rendering of one chart."""
    consumer: Consumer | None = None
    """The chart of this case, where the input is a library."""
    notes: tuple[str, ...] = ()
    """Sentences about what was left out or assumed."""

    def is_assumed(self, ref: Ref) -> bool:
        """Whether the object was created before the first step because no release brings it."""
        return any(one.ref == ref for one in self.assumed)

    def written(self, step: int, ref: Ref) -> Resource | None:
        """What the release of this step, or the newest one before it, wrote under this name."""
        for release in reversed((self.before, *self.releases[: step + 1])):
            if release is not None and (found := release.find(ref)):
                return found
        return None

    def all_resources(self) -> Iterator[Resource]:
        releases = (self.before, *self.releases)
        return (r for release in releases if release for r in (*release.resources, *release.crds))
