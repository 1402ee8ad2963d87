"""Deletion rules for metadata: finalizers, grace period, dependents. Knows no kinds.

The garbage collector is a controller like the others, one for each object whose owner is gone or terminating.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.model.resource import Body, metadata

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"


def finalizers_for(body: Body, propagation: str) -> list[str]:
    """The finalizers of an object after a deletion request with this propagation policy."""
    present = [f for f in metadata(body).get("finalizers") or () if f not in (FOREGROUND, ORPHAN)]
    added = {"Foreground": [FOREGROUND], "Orphan": [ORPHAN]}.get(propagation)
    if added is None:
        return present if propagation == "Background" else list(metadata(body).get("finalizers") or ())
    return [*present, *added]


def without_finalizer(body: Body, finalizer: str) -> Body:
    rest = [f for f in metadata(body).get("finalizers") or () if f != finalizer]
    return {**body, "metadata": {**metadata(body), "finalizers": rest}}


def owner_uids(body: Body) -> Iterator[str]:
    return (str(owner.get("uid", "")) for owner in metadata(body).get("ownerReferences") or ())


def without_owner(body: Body, uid: str) -> Body:
    """The object without this owner."""
    owners = [o for o in metadata(body).get("ownerReferences") or () if o.get("uid") != uid]
    meta = {**metadata(body), "ownerReferences": owners}
    if not owners:
        del meta["ownerReferences"]
    return {**body, "metadata": meta}


def blocks(body: Body, uid: str) -> bool:
    """Whether this dependent blocks the foreground deletion of its owner."""
    owners = metadata(body).get("ownerReferences") or ()
    return any(owner.get("uid") == uid and owner.get("blockOwnerDeletion") for owner in owners)
