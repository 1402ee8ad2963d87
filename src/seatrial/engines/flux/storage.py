"""Helm's storage of a release, which takes precedence over what helm-controller remembers.

Upstream: internal/reconcile/state.go and unlock.go of helm-controller 1.6.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from seatrial.engines.flux.objects import HelmRelease, ReleaseAttempts, ReleasePolicy
from seatrial.engines.script import Command, Part, Say, Survey
from seatrial.helm import records as helmrecords
from seatrial.model.resource import Body, dig, labels_of, metadata


class StoredRevision(Struct, frozen=True):
    """One revision that Helm has written down."""

    revision: int
    status: str
    body: Body


def newest(release: HelmRelease) -> Part[StoredRevision | None]:
    """The record with the highest number."""
    return max((yield from _records(release)), key=lambda record: record.revision, default=None)


def is_server_side(release: HelmRelease, policy: ReleasePolicy, back: int = 0) -> Part[bool]:
    """Whether an action uses server-side apply: as asked, else as the newest revision did, or the one `back` before.

    Upstream: `auto` in internal/action/upgrade.go and rollback.go.
    """
    if policy.server_side is not None:
        return policy.server_side
    records = sorted((yield from _records(release)), key=lambda record: record.revision)
    return len(records) <= back or helmrecords.decode(records[-1 - back].body).get("apply_method") == "ssa"


def _records(release: HelmRelease) -> Part[list[StoredRevision]]:
    found = yield Survey()
    own = (body for body in found.body["items"] if _is_record(body, release))
    return [StoredRevision(int(labels_of(b).get("version") or 0), str(labels_of(b).get("status")), b) for b in own]


def borne_out(state: ReleaseAttempts, release: HelmRelease) -> Part[ReleaseAttempts]:
    """The state of a release, corrected by Helm's records; a pending action is declared failed."""
    record = yield from newest(release)
    if record is None:
        return replace(state, is_there=False, is_in_sync=False, good=None) if state.is_there else state
    if record.status.startswith("pending-"):
        yield from _unlocked(record, release)
        return replace(state, is_there=True, is_in_sync=False)
    return state if record.status == "uninstalled" else replace(state, is_there=True)


def _unlocked(record: StoredRevision, release: HelmRelease) -> Part[None]:
    content = helmrecords.decode(record.body)
    why = f"Release unlocked from stale '{record.status}' state"
    info = {**(content.get("info") or {}), "status": "failed", "description": why}
    meta = {"labels": {**labels_of(record.body), "status": "failed"}}
    patch: Body = {"metadata": meta, "data": {"release": helmrecords.encode({**content, "info": info})}}
    name, namespace = str(metadata(record.body)["name"]), release.target_namespace
    yield Command("merge", "v1", "Secret", namespace, name, patch)
    chart = f"{dig(content, 'chart', 'metadata', 'name')}@{dig(content, 'chart', 'metadata', 'version')}"
    whose = f"{namespace}/{release.release_name}.v{record.revision}"
    yield Say(release.ref, f"Unlocked Helm release {whose} with chart {chart} in {record.status} state")


def _is_record(body: Body, release: HelmRelease) -> bool:
    if body.get("kind") != "Secret" or body.get("type") != helmrecords.TYPE:
        return False
    home = dig(body, "metadata", "namespace") == release.target_namespace
    return home and labels_of(body).get("name") == release.release_name
