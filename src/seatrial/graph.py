"""Who needs whom: the needs of every object of a release, as edges. Reads releases and kinds, nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from seatrial import kinds
from seatrial.case import Release, Resource
from seatrial.kinds import Need
from seatrial.resource import Ref, metadata


class Edge(Struct, frozen=True):
    """`user` needs what `need` names."""

    user: Resource
    need: Need


def needs_of(resource: Resource) -> list[Need]:
    """What one object names; a name without a namespace means the object's own.

    An object that is not of the shape of its kind names nothing: the API server will refuse it, and that is told.
    """
    known = kinds.known().get((resource.ref.group, resource.ref.kind))
    if known is None:
        return []
    body, meta = resource.body, metadata(resource.body)
    if resource.ref.namespace and not meta.get("namespace"):
        body = {**body, "metadata": {**meta, "namespace": resource.ref.namespace}}
    try:
        return list(known.needs(body))
    except (AttributeError, KeyError, TypeError, ValueError):
        return []


def edges(resources: Iterable[Resource]) -> Iterator[Edge]:
    return (Edge(resource, need) for resource in resources for need in needs_of(resource))


def users_of(release: Release, ref: Ref) -> list[Edge]:
    """The objects of a release that need `ref`, guesses left out."""
    return [edge for edge in edges(release.resources) if edge.need.object == ref and not edge.need.guess]
