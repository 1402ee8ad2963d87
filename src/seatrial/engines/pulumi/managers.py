"""Field managers: under which name Pulumi applies objects, and whose fields it takes over.

Upstream: `fieldManagerName` in `provider/pkg/provider/provider.go` and `fixCSAFieldManagers` in
`provider/pkg/await/await.go` of pulumi-kubernetes 4.32. Names have a suffix of chance there; here it comes of the URN.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

from seatrial.engines.fieldowners import moved, written_by
from seatrial.engines.pulumi.diffing import Path, put
from seatrial.model.program import Registration
from seatrial.model.resource import Body, annotations_of, dig, metadata

CREATES = "pulumi-kubernetes"
PATCH_MANAGER = "pulumi.com/patchFieldManager"
PATCH_FORCE = "pulumi.com/patchForce"
HANDED_OVER = (
    *(("kubectl", "Apply"), ("kubectl", "Update"), ("before-first-apply", "Update")),
    *((CREATES, "Update"), ("pulumi-resource-kubernetes", "Update")),
)
"""Whose fields an update takes over."""


def manager_of(one: Registration) -> str:
    """Under which name a resource is applied; objects are made under a common one."""
    said = annotations_of(one.object or {}).get(PATCH_MANAGER)
    return str(said) if said else f"{CREATES}-{hashlib.sha256(one.urn.encode()).hexdigest()[:8]}"


def forces(one: Registration) -> bool:
    """Whether it takes fields from others."""
    return one.manner.forces or annotations_of(one.object or {}).get(PATCH_FORCE) == "true"


def handed_over(live: Body, manager: str) -> Body | None:
    """What makes the fields of a creation, and of kubectl, those of this manager; else apply would be in conflict."""
    entries = metadata(live).get("managedFields") or []
    taken = written_by(HANDED_OVER, entries)
    if not taken:
        return None
    version = metadata(live).get("resourceVersion")
    return {"metadata": {"managedFields": moved(entries, taken, manager), "resourceVersion": version}}


def left_to_others(body: Body, live: Body, ignored: Iterable[Path], manager: str) -> Body:
    """What is sent where changes are ignored: without the fields that only others have, and the live value of the rest.

    As `handleSSAIgnoreFields` does, which knows no lists.
    """
    for path in ignored:
        field = tuple(f"f:{step}" for step in path)
        owners = {e.get("manager") for e in metadata(live).get("managedFields") or [] if _has(e.get("fieldsV1"), field)}
        if owners and manager not in owners:
            body = put(body, path, None)
        elif dig(live, *path) is not None:
            body = put(body, path, dig(live, *path))
    return body


def _has(fields: Any, path: tuple[str, ...]) -> bool:
    return dig(fields, *path) is not None
