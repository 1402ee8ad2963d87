"""Metadata that controllers read and write: owners, finalizers, creation time."""

from __future__ import annotations

from seatrial.kinds import Acts, Update, World
from seatrial.kinds.core.selection import selected
from seatrial.model.resource import Body, metadata, name_of, uid_of

DEFAULT_TIME = "2026-01-01T00:00:00Z"


def created_at(body: Body) -> str:
    """The creation time. It is the only time that kinds know: nothing takes longer than creating the object."""
    return str(metadata(body).get("creationTimestamp") or DEFAULT_TIME)


def namespace_of(body: Body) -> str:
    return str(metadata(body).get("namespace") or "")


def is_terminating(body: Body) -> bool:
    """Whether it has a deletionTimestamp."""
    return bool(metadata(body).get("deletionTimestamp"))


def generation_of(body: Body) -> int:
    return int(metadata(body).get("generation") or 0)


def with_metadata(body: Body, **fields: object) -> Body:
    """The body with these metadata fields; None removes a field."""
    meta = {key: value for key, value in {**metadata(body), **fields}.items() if value is not None}
    return {**body, "metadata": meta}


def finalizers_of(body: Body) -> list[str]:
    return list(metadata(body).get("finalizers") or ())


def with_finalizer(body: Body, finalizer: str) -> Body:
    present = finalizers_of(body)
    return body if finalizer in present else with_metadata(body, finalizers=[*present, finalizer])


def without_finalizer(body: Body, finalizer: str) -> Body:
    rest = [other for other in finalizers_of(body) if other != finalizer]
    return with_metadata(body, finalizers=rest or None)


def controller_of(body: Body) -> Body | None:
    """The owner reference of the controller, if there is one."""
    owners = metadata(body).get("ownerReferences") or ()
    return next((owner for owner in owners if owner.get("controller")), None)


def controller_reference(owner: Body) -> Body:
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": name_of(owner),
        "uid": uid_of(owner),
        "controller": True,
        "blockOwnerDeletion": True,
    }


def adopt(owner: Body, world: World, kind: str, selector: Body, group: str = "", name_start: str = "") -> Acts:
    """Adopt objects that match the selector and have no controller, as after `kubectl delete --cascade=orphan`."""
    if is_terminating(owner) or not selector:
        return
    for body in selected(world, kind, namespace_of(owner), selector, group):
        if controller_of(body) is None and not is_terminating(body) and name_of(body).startswith(name_start):
            others = metadata(body).get("ownerReferences") or []
            yield Update(with_metadata(body, ownerReferences=[*others, controller_reference(owner)]))
