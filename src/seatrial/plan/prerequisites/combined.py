"""All objects that exist before the first step: those the user declares, and the prerequisites of the releases."""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.engines.setting import Setting
from seatrial.model.release import Release, Resource
from seatrial.model.resource import Body, metadata, name_of
from seatrial.model.result import Prerequisite
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


def prerequisites_of(
    before: Release | None, releases: list[Release], setting: Setting
) -> list[tuple[Body, Prerequisite]]:
    """Objects that the releases need and do not contain; the kinds and namespaces of `before` already exist."""
    given = setting.assumed
    earlier = [before] if before else []
    crds = [crd for release in releases for crd in release.crds]
    crds_needed = (*needed.crds(earlier, crds, given, deployed=True), *needed.crds(releases, (), given))
    served = (*given, *(body for body, _ in crds_needed))
    objects = [*needed.objects(releases, served, described_in(given)), *needed.used_by_programs(releases)]
    found = (
        *crds_needed,
        *needed.namespaces(releases, [setting.namespace], objects),
        *needed.namespaces(earlier, []),
        *needed.operators(releases, given),
        *objects,
    )
    first: dict[str, tuple[Body, Prerequisite]] = {}
    assumed = {_named(body) for body in setting.assumed}
    for body, prerequisite in found:
        if _named(body) not in assumed:
            first.setdefault(prerequisite.object, (body, prerequisite))
    return list(first.values())


def without_installed(trial: Trial, releases: list[Release], setting: Setting) -> list[Body]:
    """The assumed objects, without the workloads and CRDs of operators that a release itself installs."""
    brought = (resource.ref for release in releases for resource in (*release.resources, *release.crds))
    return without_installed_parts(setting.assumed, trial.assume.operators, brought)


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
) -> Iterator[Body]:
    """The objects that the trial file and the flags declare, and their namespaces."""
    yield from needed.from_api_versions(api_versions, served)
    for operator in assume.operators:
        yield from assumed_objects(operator)
    paths = (*map(opened.path, (*assume.crds, *assume.objects)), *files)
    written = [r for path in paths for r in read_manifests(path, namespace=namespace).resources]
    for name in sorted({resource.ref.namespace for resource in written} - {""}):
        yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    yield from map(_in_its_namespace, written)
    yield from storage_classes(assume.storage_classes)


def _in_its_namespace(resource: Resource) -> Body:
    if not resource.ref.namespace:
        return resource.body
    return {**resource.body, "metadata": {**metadata(resource.body), "namespace": resource.ref.namespace}}
