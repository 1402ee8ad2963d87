"""The needs of every object of a release, as edges. Reads releases and kinds, nothing else.

`linking` adds what no field names (namespaces, CRDs, webhooks, objects that operators create) and builds the graph.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

from msgspec import Struct

from seatrial import kinds
from seatrial.kinds import Kind, Need
from seatrial.model.release import Release, Resource, once
from seatrial.model.resource import Body, Ref, metadata


class Edge(Struct, frozen=True):
    """`user` needs the object that `need` names."""

    user: Resource
    need: Need


def needs_of(resource: Resource) -> tuple[Need, ...]:
    """The objects that one object names. A name without a namespace means the object's own namespace.

    An object whose body does not fit its kind names nothing: the API server rejects it, and that is reported.
    """
    return once(resource, "needs", lambda: _needs(resource))


def _needs(resource: Resource) -> tuple[Need, ...]:
    known = kinds.known().get((resource.ref.group, resource.ref.kind))
    if known is None:
        return ()
    try:
        return tuple(known.needs(placed(resource)))
    except (AttributeError, KeyError, TypeError, ValueError):
        return ()


def products_of(resource: Resource, also: Mapping[tuple[str, str], Kind] = MappingProxyType({})) -> list[Ref]:
    """The objects that an object leads to, by name. `also` are kinds that a trial describes."""
    key = (resource.ref.group, resource.ref.kind)
    known = also.get(key) or kinds.known().get(key)
    if known is None:
        return []
    try:
        return list(known.produces(placed(resource)))
    except (AttributeError, KeyError, TypeError, ValueError):
        return []


def placed(resource: Resource) -> Body:
    """The body with the namespace it will have."""
    body, meta = resource.body, metadata(resource.body)
    if not resource.ref.namespace or meta.get("namespace"):
        return body
    return {**body, "metadata": {**meta, "namespace": resource.ref.namespace}}


def edges(resources: Iterable[Resource]) -> Iterator[Edge]:
    return (Edge(resource, need) for resource in resources for need in needs_of(resource))


def users_of(release: Release, ref: Ref) -> Sequence[Edge]:
    """The objects of a release that need `ref`, without guesses."""
    return once(release, "users", lambda: _users(release)).get(ref, [])


def _users(release: Release) -> dict[Ref, list[Edge]]:
    found: dict[Ref, list[Edge]] = {}
    for edge in edges(release.resources):
        if not edge.need.guess:
            found.setdefault(edge.need.object, []).append(edge)
    return found
