"""ControllerRevision: the earlier templates of a StatefulSet or DaemonSet."""

from __future__ import annotations

from collections.abc import Generator, Iterator

from seatrial.kinds import Act, Acts, Create, Delete, Kind, Update, World
from seatrial.kinds.core.immutable import IMMUTABLE, NEWEST, invalid
from seatrial.kinds.core.objectmeta import is_terminating, namespace_of
from seatrial.kinds.tables.internal_types import shown, sorted_maps
from seatrial.kinds.workloads.rollout import template_hash
from seatrial.model.resource import Body, dig, labels_of, name_of

HASH_LABEL = "controller-revision-hash"
HISTORY = 10
"""The default of revisionHistoryLimit."""


def revisions_of(owner: Body, world: World) -> list[Body]:
    """Oldest first."""
    return sorted(world.owned(owner, "ControllerRevision", "apps"), key=_number)


def keep_revision(owner: Body, world: World) -> Generator[Act, str | None, Body]:
    """Create the revision of the owner's template, or make it the newest. Returns it.

    Not while the owner is being deleted: the garbage collector deletes its revisions before its pods are gone.
    """
    known = revisions_of(owner, world)
    wanted = _revision(owner, known)
    same = [revision for revision in known if revision.get("data") == wanted["data"]]
    if not same:
        if not is_terminating(owner):
            yield Create(wanted, owner=owner)
        return wanted
    newest = same[-1]
    if newest is known[-1]:
        return newest
    newest = {**newest, "revision": _number(known[-1]) + 1}
    yield Update(newest)
    return newest


def delete_old_revisions(owner: Body, world: World, live: set[str]) -> Acts:
    """Delete the oldest revisions that no pod and no status refers to."""
    limit = dig(owner, "spec", "revisionHistoryLimit")
    idle = [revision for revision in revisions_of(owner, world) if name_of(revision) not in live]
    for revision in idle[: max(0, len(idle) - (HISTORY if limit is None else int(limit)))]:
        yield Delete(revision, why="exceeds revisionHistoryLimit")


def template_of(revision: Body) -> Body:
    found = dig(revision, "data", "spec", "template") or {}
    return {key: value for key, value in found.items() if key != "$patch"}


def immutable(old: Body, new: Body, minor: int = NEWEST, /) -> Iterator[str]:
    if old.get("data") != new.get("data"):
        yield invalid("data", shown(sorted_maps(new.get("data"))), IMMUTABLE)


def _revision(owner: Body, known: list[Body]) -> Body:
    template = dig(owner, "spec", "template") or {}
    hashed = template_hash(template)
    return {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {
            "name": f"{name_of(owner)}-{hashed}",
            "namespace": namespace_of(owner),
            "labels": {**labels_of(template), HASH_LABEL: hashed},
        },
        "data": {"spec": {"template": {**template, "$patch": "replace"}}},
        "revision": _number(known[-1]) + 1 if known else 1,
    }


def _number(revision: Body) -> int:
    return int(revision.get("revision") or 0)


KINDS = (Kind("ControllerRevision", "apps", immutable=immutable),)
