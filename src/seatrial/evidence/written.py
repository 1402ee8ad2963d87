"""The objects of the newest revision of the input, with what their annotations say to seatrial."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from seatrial.evidence.alike import DEPLOYS
from seatrial.evidence.compare.engine_differences import ComparedRehearsal
from seatrial.evidence.moment import moments
from seatrial.model.acceptance import ANNOTATION, WrittenObject
from seatrial.model.release import Release, Resource
from seatrial.model.resource import Resolve, annotations_of


def written(seen: Iterable[ComparedRehearsal], resolve: Resolve) -> Iterator[WrittenObject]:
    """Each object once. A rollback deploys an old revision on purpose."""
    newest: dict[tuple[str, str, str, str], Release] = {}
    for one in seen:
        for moment in moments(one.rehearsal, one.case):
            ended = moment.ended
            if moment.release is not None and not ended.next_version and ended.role in DEPLOYS:
                engine = one.rehearsal.engine.name
                newest[one.case.name, engine, ended.release, ended.namespace] = moment.release
    resources = (r for release in newest.values() for r in (*release.resources, *release.crds, *release.left_out))
    yield from dict.fromkeys(_written(resource, resolve) for resource in resources)


def _written(resource: Resource, resolve: Resolve) -> WrittenObject:
    text = annotations_of(resource.body).get(ANNOTATION)
    if not isinstance(text, str):
        return WrittenObject(resource.ref, resource.file)
    place = resolve(resource.place("metadata", "annotations", ANNOTATION))
    return WrittenObject(resource.ref, resource.file, text, place)
