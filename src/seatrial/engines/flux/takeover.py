"""What Flux takes over from kubectl before it applies an object: fields that were set by hand become its own.

So they go where no file says them, which is how Flux undoes `kubectl edit` and `kubectl rollout restart`. Fields of
other managers stay.

Upstream: `cleanupMetadata` in ssa/manager_apply.go and `PatchReplaceFieldsManagers` in ssa/patch.go of fluxcd/pkg; the
managers stand in `apply` of kustomize-controller.
"""

from __future__ import annotations

from seatrial.resource import Body, annotations_of, metadata

MANAGER = "kustomize-controller"
TAKEN = (("kubectl", "Apply"), ("kubectl", "Update"), ("before-first-apply", "Update"), (MANAGER, "Update"))
"""What the names of managers begin with, and how they wrote."""
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def takeover(live: Body) -> Body | None:
    """The patch that makes fields of kubectl's Flux's own; none where there are none."""
    entries = metadata(live).get("managedFields") or []
    taken = [entry for entry in entries if _is_taken(entry)]
    forgets = LAST_APPLIED in annotations_of(live)
    if not taken and not forgets:
        return None
    meta: Body = {"annotations": {LAST_APPLIED: None}} if forgets else {}
    return {"metadata": {**meta, "managedFields": _merged(entries, taken)} if taken else meta}


def _is_taken(entry: Body) -> bool:
    if entry.get("subresource"):
        return False
    return any(str(entry.get("manager")).startswith(name) and entry.get("operation") == how for name, how in TAKEN)


def _merged(entries: list[Body], taken: list[Body]) -> list[Body]:
    """The entries, with those that are taken over in Flux's own at the end."""
    own = [entry for entry in entries if (entry.get("manager"), entry.get("operation")) == (MANAGER, "Apply")]
    fields: Body = {}
    for entry in (*own, *taken):
        fields = _union(fields, entry.get("fieldsV1") or {})
    others = [entry for entry in entries if entry not in own and entry not in taken]
    return [*others, {**(own or taken)[0], "manager": MANAGER, "operation": "Apply", "fieldsV1": fields}]


def _union(one: Body, other: Body) -> Body:
    both = {key: _union(one[key], other[key]) for key in one.keys() & other.keys()}
    return {**one, **other, **both}
