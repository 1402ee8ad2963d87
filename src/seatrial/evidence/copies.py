"""Regular resources that a release contains more than once, with different content."""

from __future__ import annotations

from seatrial.helm import hooks
from seatrial.model.release import Release, Resource
from seatrial.model.resource import Ref


def differing_copies(release: Release | None, *, with_hooks: bool = False) -> dict[Ref, list[Resource]]:
    """Each in the order of the manifest; `with_hooks` for engines to which hooks are regular resources."""
    found: dict[Ref, list[Resource]] = {}
    for resource in release.resources if release else ():
        if with_hooks or not hooks.is_hook(resource.body):
            found.setdefault(resource.ref, []).append(resource)
    return {ref: copies for ref, copies in found.items() if any(copy.body != copies[-1].body for copy in copies)}
