"""Objects of the user's files as a live cluster names them: with the scope that discovery gives their kind."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from seatrial.live.discovery import Served
from seatrial.model.release import Resource
from seatrial.model.resource import metadata, with_metadata


def placed(resources: Iterable[Resource], served: Served) -> Iterator[Resource]:
    """Each object in its namespace. A kind that is not served yet has the scope that its manifests say."""
    for resource in resources:
        kind = served.find(resource.ref.group, resource.ref.kind)
        if kind is not None and not kind.namespaced:
            bare = {key: value for key, value in metadata(resource.body).items() if key != "namespace"}
            yield replace(resource, ref=replace(resource.ref, namespace=""), body={**resource.body, "metadata": bare})
        elif resource.ref.namespace:
            yield replace(resource, body=with_metadata(resource.body, namespace=resource.ref.namespace))
        else:
            yield resource
