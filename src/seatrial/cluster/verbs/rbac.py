"""Authorization of requests. Admins may do everything."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from seatrial.cluster.refusal import Refused
from seatrial.cluster.request import Request
from seatrial.cluster.verbs import reviews
from seatrial.cluster.verbs.fieldselector import named
from seatrial.kinds.access.authorizer import (
    ACCOUNT,
    ADMIN,
    AUTHENTICATED,
    Access,
    User,
    decide,
    denied,
    forbidden_message,
    service_account,
)
from seatrial.model.resource import Ref

if TYPE_CHECKING:
    from seatrial.cluster.cluster import Cluster

LISTING = ("list", "watch", "deletecollection")
WRITING = ("create", "update", "patch", "delete", "deletecollection")


def user_of(cluster: Cluster, headers: Mapping[bytes, bytes]) -> User:
    """The user of a request: by a token that was issued here, or impersonated (`kubectl --as`)."""
    kind, _, token = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
    user = (reviews.user_of(cluster, token) if kind.lower() == "bearer" else None) or ADMIN
    name = headers.get(b"impersonate-user", b"").decode("latin-1")
    if not name:
        return user
    access = _impersonation(name)
    decision = decide(user, access, cluster.view())
    if not decision.allowed:
        raise forbidden(user, access, decision.reason)
    groups = tuple(filter(None, headers.get(b"impersonate-group", b"").decode("latin-1").split("\n")))
    if access.resource == "serviceaccounts" and not groups:
        return service_account(access.namespace, access.name)
    return User(name, groups if AUTHENTICATED in groups else (*groups, AUTHENTICATED))


def authorize(cluster: Cluster, request: Request) -> None:
    """Raise `Refused` if the user may not make the request."""
    if request.user is ADMIN:
        return
    access = access_of(request)
    decision = decide(request.user, access, cluster.view())
    if decision.allowed:
        return
    refused = forbidden(request.user, access, decision.reason)
    kind = cluster.discovery.find(request.group, request.version, request.plural)
    if kind is not None and request.verb in WRITING:
        ref = Ref(kind.kind, request.namespace if kind.namespaced else "", request.name, kind.group)
        cluster.recorder.refused(request.actor, request.verb, ref, refused.refusal)
    raise refused


def _impersonation(name: str) -> Access:
    namespace, colon, account = name.removeprefix(ACCOUNT).partition(":")
    if name.startswith(ACCOUNT) and colon:
        return Access("impersonate", "", "serviceaccounts", namespace, account)
    return Access("impersonate", "", "users", "", name)


def access_of(request: Request) -> Access:
    """The access that a request needs. For a list of one object by name, its name."""
    name = request.name or (named(request.field_selector) if request.verb in LISTING else "")
    namespace = request.name if request.plural == "namespaces" and not request.group else request.namespace
    return Access(request.verb, request.group, request.plural, namespace, name, request.subresource)


def forbidden(user: User, access: Access, reason: str) -> Refused:
    details = {"name": access.name, "group": access.group, "kind": access.resource}
    # Quoted as HTML, as the API server does.
    message = forbidden_message(user, access, reason).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    given = {key: value for key, value in details.items() if value}
    return Refused(403, "Forbidden", message, given, denied=denied(user, access))
