"""Regular resources that a release contains more than once, with different content."""

from __future__ import annotations

from seatrial.helm import hooks
from seatrial.model.release import Release, Resource
from seatrial.model.resource import Ref


def differing_copies(release: Release | None) -> dict[Ref, list[Resource]]:
    """Each in the order of the manifest."""
    found: dict[Ref, list[Resource]] = {}
    for resource in release.resources if release else ():
        if not hooks.is_hook(resource.body):
            found.setdefault(resource.ref, []).append(resource)
    return {ref: copies for ref, copies in found.items() if any(copy.body != copies[-1].body for copy in copies)}
