"""Permissions that an engine needs to deploy releases, asked one by one (SelfSubjectAccessReview)."""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.kinds.operators.table import plural_for
from seatrial.live.client import Client
from seatrial.model.refusal import Denial
from seatrial.model.release import Release
from seatrial.model.resource import Ref

VERBS = ("get", "create", "patch", "delete")
"""What every engine does to the objects of a release in its life."""
RECORD_VERBS = ("get", "list", "create", "update", "delete")
"""What Helm does to the Secrets in which it keeps revisions."""
ALL = "*"


def missing(client: Client, releases: list[Release], *, by_helm: bool) -> Iterator[Denial]:
    """Permissions that we do not have. One review for each kind and namespace if everything is allowed there."""
    for (group, plural, namespace), verbs in sorted(_needed(releases, by_helm=by_helm).items()):
        if client.may(ALL, group, plural, namespace):
            continue
        for verb in verbs:
            if not client.may(verb, group, plural, namespace):
                yield Denial("", (verb,), plural, group, namespace)


def _needed(releases: list[Release], *, by_helm: bool) -> dict[tuple[str, str, str], tuple[str, ...]]:
    found: dict[tuple[str, str, str], tuple[str, ...]] = {}
    for release in releases:
        for resource in (*release.resources, *release.crds):
            found[(*_resource(resource.ref), resource.ref.namespace)] = VERBS
    for release in releases if by_helm else ():
        key = "", "secrets", release.namespace
        found[key] = tuple(dict.fromkeys((*found.get(key, ()), *RECORD_VERBS)))
    return found


def _resource(ref: Ref) -> tuple[str, str]:
    return ref.group, plural_for(ref.group, ref.kind)
