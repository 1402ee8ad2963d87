"""What the API server asks of an object before it takes it in, beyond its shape. Refuses in the server's words."""

from __future__ import annotations

from seatrial.cluster.refusal import forbidden, not_found, terminating
from seatrial.kinds import World
from seatrial.kinds.catalogue import ServedKind
from seatrial.resource import Body, Ref, dig, metadata, name_of


def admit_creation(kind: ServedKind, body: Body, world: World) -> None:
    """Refuse what may not be made here and now."""
    if kind.namespaced:
        _namespace_lifecycle(kind, body, world)
    if (kind.group, kind.kind) == ("", "Pod"):
        _service_account(kind, body, world)


def _namespace_lifecycle(kind: ServedKind, body: Body, world: World) -> None:
    name = metadata(body).get("namespace", "")
    namespace = world.get(Ref("Namespace", "", name))
    if namespace is None:
        raise not_found("namespaces", "", name)
    if metadata(namespace).get("deletionTimestamp"):
        raise terminating(kind.plural, kind.group, name_of(body), name)


def _service_account(kind: ServedKind, body: Body, world: World) -> None:
    namespace = metadata(body).get("namespace", "")
    account = str(dig(body, "spec", "serviceAccountName") or "default")
    if world.get(Ref("ServiceAccount", namespace, account)) is None:
        why = f'error looking up service account {namespace}/{account}: serviceaccount "{account}" not found'
        raise forbidden(kind.plural, kind.group, name_of(body), why)
