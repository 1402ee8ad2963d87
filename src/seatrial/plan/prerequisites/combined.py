"""All objects that exist before the first step: those the user declares, and the prerequisites of the releases."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from seatrial.engines.setting import Setting
from seatrial.kinds.network import addresses
from seatrial.kinds.operators.generic import description
from seatrial.kinds.operators.removers import removers
from seatrial.model.errors import CannotContinue
from seatrial.model.release import Release, Resource
from seatrial.model.resource import Body, metadata, name_of
from seatrial.model.result import Prerequisite
from seatrial.model.snapshot import Snapshot
from seatrial.model.trial import Assumptions, Trial
from seatrial.plan.prerequisites import needed
from seatrial.plan.prerequisites.declared import (
    assumed_objects,
    described_in,
    storage_classes,
    without_installed_parts,
)
from seatrial.sources.manifests.reading import read_manifests
from seatrial.sources.opened import Opened

FIRST = ("CustomResourceDefinition/", "Namespace/")
"""Kinds that must exist before objects of other kinds."""


class Prerequisites(Struct, frozen=True):
    """What releases need and do not contain."""

    assumed: list[tuple[Body, Prerequisite]]
    absent: list[Prerequisite]
    """What the user says is not in the cluster."""


def prerequisites_of(before: Release | None, releases: list[Release], setting: Setting) -> Prerequisites:
    """Objects that the releases need and do not contain; the kinds and namespaces of `before` already exist."""
    given = setting.assumed
    earlier = [before] if before else []
    crds = [crd for release in releases for crd in release.crds]
    of_before = needed.crds(earlier, crds, given, deployed=True)
    skipped = [crd for release in releases for crd in release.skipped_crds]
    of_releases = needed.crds(releases, skipped, given, engine=setting.engine.name)
    served = (*given, *(body for body, _ in (*of_before, *of_releases)))
    objects = [*needed.objects(releases, served, described_in(given)), *needed.used_by_programs(releases)]
    there = _first((*of_before, *needed.namespaces(earlier, [])), given)
    wanted = _first(
        (
            *of_releases,
            *needed.namespaces(releases, [setting.namespace], objects),
            *needed.operators(releases, given),
            *objects,
        ),
        given,
    )
    lacks = partial(_lacks, setting.snapshot)
    there = {name: one for name, one in there.items() if not lacks(*one)}
    absent = {
        name
        for name, one in wanted.items()
        if name not in there and (setting.only or name in setting.absent or lacks(*one))
    }
    found = there | {name: one for name, one in wanted.items() if name not in absent}
    ordered = [*(name for name in found if name.startswith(FIRST)), *(n for n in found if not n.startswith(FIRST))]
    return Prerequisites(
        [found[name] for name in ordered],
        [replace(wanted[name][1], ref=needed.ref_in_cluster(wanted[name][0])) for name in sorted(absent)],
    )


def _lacks(snapshot: Snapshot | None, body: Body, prerequisite: Prerequisite) -> bool:
    """Whether a real cluster is known not to have a prerequisite."""
    if snapshot is None:
        return False
    if prerequisite.operator:
        return snapshot.operators
    return snapshot.lacks(needed.ref_in_cluster(body))


def _first(found: Iterable[tuple[Body, Prerequisite]], given: Iterable[Body]) -> dict[str, tuple[Body, Prerequisite]]:
    """The first prerequisite of each object that is not given."""
    said, first = {_named(body) for body in given}, dict[str, tuple[Body, Prerequisite]]()
    for body, prerequisite in found:
        if _named(body) not in said:
            first.setdefault(prerequisite.object, (body, prerequisite))
    return first


def without_installed(trial: Trial, releases: list[Release], setting: Setting) -> list[Body]:
    """The assumed objects, without the workloads and CRDs of operators that a release itself installs."""
    brought = (resource.ref for release in releases for resource in (*release.resources, *release.crds))
    return without_installed_parts(setting.assumed, trial.assume.operators, brought)


def descriptions_of_removers(trial: Trial, releases: list[Release]) -> Iterator[Body]:
    """Descriptions of the operators in the releases that remove finalizers of manifests, unless the trial has them."""
    said = {kind for operator in trial.assume.operators for kind in operator.all_kinds}
    return (description(one) for one in removers(releases) if not said.intersection(one.kinds))


def _named(body: Body) -> tuple[object, object, str]:
    return body.get("kind"), metadata(body).get("namespace"), name_of(body)


def declared_objects(
    assume: Assumptions,
    opened: Opened,
    namespace: str,
    served: tuple[str, ...],
    *,
    api_versions: tuple[str, ...],
    files: tuple[str, ...],
    only: bool = False,
) -> Iterator[Body]:
    """The objects that the trial file and the flags declare, and their namespaces."""
    yield from needed.from_api_versions(api_versions, served)
    for operator in assume.operators:
        yield from assumed_objects(operator)
    paths = (*map(opened.path, (*assume.crds, *assume.objects)), *files)
    written = [r for path in paths for r in read_manifests(path, namespace=namespace).resources]
    yield from needed.platform_crds(written)
    for name in sorted({resource.ref.namespace for resource in written} - {""}):
        yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    yield from map(_in_its_namespace, written)
    yield from addresses.settings(assume.load_balancers, assume.ingresses)
    if assume.storage_classes or not only:
        yield from storage_classes(assume.storage_classes)


def absent_names(given: Iterable[str]) -> tuple[str, ...]:
    """The objects that are said to be absent, as reports name them."""
    for name in given:
        if not 2 <= len([part for part in name.split("/") if part]) == len(name.split("/")) <= 3:
            raise CannotContinue(f"absent {name}: name an object as Kind/namespace/name, or Kind/name without one")
    return tuple(given)


def _in_its_namespace(resource: Resource) -> Body:
    if not resource.ref.namespace:
        return resource.body
    return {**resource.body, "metadata": {**metadata(resource.body), "namespace": resource.ref.namespace}}
