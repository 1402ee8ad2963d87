"""Who applied which fields, as objects bear it, and how clients make them one manager's before they apply an object.

Upstream: `UpgradeManagedFields` in util/csaupgrade/upgrade.go of client-go, and its kin in fluxcd/pkg and
pulumi-kubernetes.
"""

from __future__ import annotations

from seatrial.model.resource import Body, dig, metadata

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
"""What was applied on the client's side."""

Managers = tuple[tuple[str, str], ...]
"""What the names of managers begin with, and how they wrote: `Apply` or `Update`."""


def written_by(managers: Managers, entries: list[Body]) -> list[Body]:
    """The entries of these managers; what was written to a subresource is not moved."""
    return [entry for entry in entries if not entry.get("subresource") and _is_of(managers, entry)]


def annotation_owners(body: Body, how: str) -> list[Body]:
    """The entries of those who own the annotation of the last apply, by how they wrote: `Apply` or `Update`."""
    path = ("fieldsV1", "f:metadata", "f:annotations", f"f:{LAST_APPLIED}")
    entries: list[Body] = metadata(body).get("managedFields") or []
    return [entry for entry in entries if entry.get("operation") == how and dig(entry, *path) is not None]


def moved(entries: list[Body], taken: list[Body], manager: str) -> list[Body]:
    """All entries, with those that are taken in the one of this manager's applying."""
    own = [entry for entry in entries if (entry.get("manager"), entry.get("operation")) == (manager, "Apply")]
    fields: Body = {}
    for entry in (*own, *taken):
        fields = _union(fields, entry.get("fieldsV1") or {})
    others = [entry for entry in entries if entry not in own and entry not in taken]
    return [*others, {**(own or taken)[0], "manager": manager, "operation": "Apply", "fieldsV1": fields}]


def _is_of(managers: Managers, entry: Body) -> bool:
    return any(str(entry.get("manager")).startswith(name) and entry.get("operation") == how for name, how in managers)


def _union(one: Body, other: Body) -> Body:
    return {**one, **{key: _union(one.get(key) or {}, value) for key, value in other.items()}}
