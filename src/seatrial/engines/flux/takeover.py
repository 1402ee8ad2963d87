"""Fields set with kubectl become Flux's own before it applies an object.

So they go where no file says them, which is how Flux undoes `kubectl edit` and `kubectl rollout restart`. Fields of
other managers stay.

Upstream: `cleanupMetadata` in ssa/manager_apply.go and `PatchReplaceFieldsManagers` in ssa/patch.go of fluxcd/pkg; the
managers stand in `apply` of kustomize-controller.
"""

from __future__ import annotations

from seatrial.engines.fieldowners import LAST_APPLIED, moved, written_by
from seatrial.model.resource import Body, annotations_of, metadata

MANAGER = "kustomize-controller"
TAKEN = (("kubectl", "Apply"), ("kubectl", "Update"), ("before-first-apply", "Update"), (MANAGER, "Update"))


def takeover(live: Body) -> Body | None:
    """The patch that moves kubectl's fields to Flux; none if there are none."""
    entries = metadata(live).get("managedFields") or []
    taken = written_by(TAKEN, entries)
    forgets = LAST_APPLIED in annotations_of(live)
    if not taken and not forgets:
        return None
    meta: Body = {"annotations": {LAST_APPLIED: None}} if forgets else {}
    return {"metadata": {**meta, "managedFields": moved(entries, taken, MANAGER)} if taken else meta}
