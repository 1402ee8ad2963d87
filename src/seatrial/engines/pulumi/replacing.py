"""Which changes replace an object, and whether the old one is deleted first.

Upstream: `Diff` in `provider/pkg/provider/provider.go` of pulumi-kubernetes 4.32.
"""

from __future__ import annotations

from msgspec.structs import replace

from seatrial.engines.pulumi.diffing import FieldChange, Path, changes, covers, path_of, put, touches
from seatrial.kinds.tables.pulumi_force_new import ALWAYS, RELEASE_INPUTS, force_new_fields
from seatrial.model.program import HELM_RELEASE, Registration
from seatrial.model.resource import annotations_of, dig

UNREADY = "pulumi.com/replaceUnready"
INIT_ERROR = FieldChange(("#initerror",))
"""What the engine takes for a change of a resource that never got ready."""


def replaces(old: Registration, new: Registration, *, unready: bool = False) -> bool:
    """Whether a change replaces the object; otherwise it is updated in place."""
    if old.type == HELM_RELEASE:
        return any(makes_another(new, change) for change in changes(old.inputs, new.inputs))
    asked = [path_of(path) for path in new.options.replace_on_changes]
    if unready and any(covers(path, INIT_ERROR.path) for path in asked):
        return True
    return any(makes_another(new, change) for change in changes(old.object, new.object))


def makes_another(one: Registration, change: FieldChange) -> bool:
    """Whether a change is of a field that is never changed in place, by its kind or by the option of the resource."""
    if any(covers(path_of(path), change.path) for path in one.options.replace_on_changes):
        return True
    return any(touches(path, change) for path in _forced(one))


def without_ignored(old: Registration, new: Registration) -> Registration:
    """The new one as the provider gets it: what `ignoreChanges` names stays as it was."""
    if old.object is None or new.object is None:
        return new
    body = new.object
    for path in map(path_of, new.options.ignore_changes):
        body = put(body, path, dig(old.object, *path))
    return replace(new, object=body)


def deletes_first(old: Registration, new: Registration) -> bool:
    """Whether the provider deletes the old object first, because both have one name."""
    return new.type != HELM_RELEASE and not new.auto_named and old.ref == new.ref


def is_replaced_unless_ready(one: Registration) -> bool:
    """Whether it is a Job that is recreated until it has completed."""
    return one.ref is not None and one.ref.kind == "Job" and annotations_of(one.object or {}).get(UNREADY) == "true"


def _forced(one: Registration) -> list[Path]:
    if one.type == HELM_RELEASE:
        return [(field,) for field in RELEASE_INPUTS]
    if one.patches:
        return [path_of(path) for path in ALWAYS]
    return [path_of(path) for path in force_new_fields(one.ref, one.manner, one.object)] if one.ref else []
