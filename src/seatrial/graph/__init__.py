"""The needs of every object of a release, as edges. Reads releases and kinds, nothing else.

`linking` adds what no field names (namespaces, CRDs, webhooks, objects that operators create) and builds the graph.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

from msgspec import Struct
from msgspec.structs import replace

from seatrial import kinds
from seatrial.kinds import Kind, Need
from seatrial.kinds.scripts.commands import RUN_SCRIPTS, with_mounted_scripts
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


def products_of(
    resource: Resource,
    also: Mapping[tuple[str, str], Kind] = MappingProxyType({}),
    beside: Mapping[Ref, Resource] = MappingProxyType({}),
) -> list[Ref]:
    """The objects that an object leads to, by name.

    `also` are kinds that a trial describes, `beside` the ConfigMaps whose scripts it may run.
    """
    key = (resource.ref.group, resource.ref.kind)
    known = also.get(key) or kinds.known().get(key)
    if known is None:
        return []
    try:
        return list(known.produces(placed(with_scripts(resource, beside))))
    except (AttributeError, KeyError, TypeError, ValueError):
        return []


def config_maps(resources: Iterable[Resource]) -> dict[Ref, Resource]:
    """The ConfigMaps among objects."""
    return {resource.ref: resource for resource in resources if resource.ref.kind == "ConfigMap"}


def with_scripts(resource: Resource, beside: Mapping[Ref, Resource]) -> Resource:
    """An object whose containers have the scripts that they run from ConfigMaps as command lines."""

    def text_of(name: str) -> Body | None:
        found = beside.get(Ref("ConfigMap", resource.ref.namespace, name))
        return found.body if found else None

    body = with_mounted_scripts(resource.body, text_of) if beside and resource.ref.kind in RUN_SCRIPTS else None
    return replace(resource, body=body) if body is not None and body is not resource.body else resource


def placed(resource: Resource) -> Body:
    """The body with the namespace it will have."""
    body, meta = resource.body, metadata(resource.body)
    if not resource.ref.namespace or meta.get("namespace"):
        return body
    return {**body, "metadata": {**meta, "namespace": resource.ref.namespace}}


def edges(resources: Iterable[Resource]) -> Iterator[Edge]:
    several = list(resources)
    beside = config_maps(several)
    return (Edge(resource, need) for resource in several for need in needs_of(with_scripts(resource, beside)))


def users_of(release: Release, ref: Ref) -> Sequence[Edge]:
    """The objects of a release that need `ref`, without guesses."""
    return once(release, "users", lambda: _users(release)).get(ref, [])


def _users(release: Release) -> dict[Ref, list[Edge]]:
    found: dict[Ref, list[Edge]] = {}
    for edge in edges(release.resources):
        if not edge.need.guess:
            found.setdefault(edge.need.object, []).append(edge)
    return found
