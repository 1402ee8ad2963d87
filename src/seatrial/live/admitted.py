"""Whether the API server admits the objects of a release now: a server-side dry run of each. Nothing is stored.

This shows what no snapshot does: admission policies, webhooks that deny or fail, quotas, immutable fields.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.helm import hooks
from seatrial.kinds.tables.catalogue import ServedKind
from seatrial.live import words
from seatrial.live.client import APPLY, Client, path_of
from seatrial.live.point import Point
from seatrial.live.transport import LiveRequest, RefusedRequest
from seatrial.model import lazy_re
from seatrial.model.release import Release, Resource
from seatrial.model.resource import Ref, dig, listed, metadata
from seatrial.model.snapshot import Snapshot
from seatrial.sources.places import place_of

MANAGER = "seatrial"
DRY = {"dryRun": "All", "fieldManager": MANAGER}
NOT_TOLD = lazy_re.compile(
    r'User "[^"]*" cannot |does not support dry run|is being terminated|error looking up service account'
    r"|no PriorityClass with name|failed to create typed patch object"
)
"""Refusals that say nothing of the object: other checks report these, or only a dry run meets them."""
SILENT = (404, 409, 429)
OBJECTS_MAX = 1_000
JUDGES = frozenset(("LimitRange", "ResourceQuota", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"))


def refused(client: Client, releases: list[Release], created: frozenset[str], snapshot: Snapshot) -> Iterator[Point]:
    """Objects that the API server refuses, in its words. What depends on what the releases bring is not tried."""
    resources = [resource for release in releases for resource in release.resources]
    brought = {one.ref for release in releases for one in (*release.resources, *release.crds)}
    kinds = {_defined(one) for release in releases for one in (*release.resources, *release.crds)}
    judges = tuple(name for resource in resources for name in _judging(resource))
    for resource in resources[:OBJECTS_MAX]:
        ref, kind = resource.ref, client.kind_of(resource.body)
        if kind is None or (ref.group, ref.kind) in kinds or not _has_home(ref, brought, created, snapshot):
            continue
        if hooks.is_hook(resource.body) and ref in snapshot.refs:  # Helm deletes it first.
            continue
        says = _refusal(client, resource, kind, exists=ref in snapshot.refs)
        if says and not any(name in says for name in judges):
            yield Point("fails", str(ref), f"the API server refuses it: {says}", place_of(resource.place()))


def _has_home(ref: Ref, brought: set[Ref], created: frozenset[str], snapshot: Snapshot) -> bool:
    home = Ref("Namespace", "", ref.namespace)
    if not ref.namespace:
        return True
    if home in brought or ref.namespace in created or snapshot.lacks(home):
        return False
    return not metadata(snapshot.refs.get(home) or {}).get("deletionTimestamp")


def _refusal(client: Client, resource: Resource, kind: ServedKind, *, exists: bool) -> str:
    home, body = resource.ref.namespace if kind.namespaced else "", resource.body
    if exists:
        path, query = path_of(kind, home, resource.ref.name), {**DRY, "force": "true"}
        request = LiveRequest("PATCH", path, query, body=body, content_type=APPLY, retries=1)
    else:
        request = LiveRequest("POST", path_of(kind, home), DRY, body=body, retries=1)
    try:
        client.transport.send(request)
    except RefusedRequest as found:
        said = found.refusal.message
        return "" if found.code in SILENT or NOT_TOLD.search(said) else words.shortened(said)
    return ""


def _defined(resource: Resource) -> tuple[str, str]:
    """The kind that a CRD defines: its objects are validated by the schema that the release brings."""
    spec = resource.body.get("spec") if resource.ref.kind == "CustomResourceDefinition" else None
    return str(dig(spec, "group") or ""), str(dig(spec, "names", "kind") or "")


def _judging(resource: Resource) -> Iterator[str]:
    """Names that refusals mention, of what judges other objects and comes with the release itself."""
    if resource.ref.kind in JUDGES:
        yield resource.ref.name
    if resource.ref.kind.endswith("WebhookConfiguration"):
        yield from (str(webhook.get("name")) for webhook in listed(resource.body, "webhooks"))
