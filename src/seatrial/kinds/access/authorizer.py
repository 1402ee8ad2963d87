"""The RBAC authorizer: what a user may do, by the roles and bindings of a world. Knows no requests.

From plugin/pkg/auth/authorizer/rbac and pkg/registry/rbac/validation of Kubernetes 1.34.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from msgspec import Struct

from seatrial.kinds.access.rbac import GROUP
from seatrial.kinds.core.selection import fits
from seatrial.kinds.tables import default_roles
from seatrial.model.refusal import Denial
from seatrial.model.resource import Body, Ref, dig, labels_of, listed, name_of

MASTERS = "system:masters"
AUTHENTICATED = "system:authenticated"
ACCOUNT = "system:serviceaccount:"
AGGREGATE_TO = "rbac.authorization.k8s.io/aggregate-to-"


class Roles(Protocol):
    """The part of a cluster that decides what a user may do."""

    def get(self, ref: Ref) -> Body | None: ...

    def all(self, kind: str, namespace: str = "", group: str = "") -> list[Body]: ...


class User(Struct, frozen=True):
    """A client of the API server."""

    name: str
    groups: tuple[str, ...] = (AUTHENTICATED,)
    uid: str = ""


ADMIN = User("kubernetes-admin", (MASTERS, AUTHENTICATED))


class Access(Struct, frozen=True):
    """One operation. With `path`, on a non-resource URL."""

    verb: str
    group: str = ""
    resource: str = ""
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    path: str = ""


class AccessDecision(Struct, frozen=True):
    allowed: bool
    reason: str = ""
    """The binding that allows it, or why some bindings could not be evaluated."""


class Grant(Struct, frozen=True):
    """One rule that applies to a user and its binding, or why a binding grants nothing."""

    source: str
    rule: Body
    error: str = ""


def service_account(namespace: str, name: str, uid: str = "") -> User:
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", AUTHENTICATED)
    return User(f"{ACCOUNT}{namespace}:{name}", groups, uid)


def decide(user: User, access: Access, world: Roles) -> AccessDecision:
    """Whether a user may do this."""
    if MASTERS in user.groups:
        return AccessDecision(True)
    errors = []
    for grant in grants(user, access.namespace, world):
        if grant.error:
            errors.append(grant.error)
        elif allows(grant.rule, access):
            return AccessDecision(True, f"RBAC: allowed by {grant.source}")
    return AccessDecision(False, f"RBAC: {_joined(errors)}" if errors else "")


def denial(user: User, access: Access) -> str:
    """The API server's sentence for a user who may not do this."""
    if access.path:
        return f'User "{user.name}" cannot {access.verb} path "{access.path}"'
    resource = f"{access.resource}/{access.subresource}" if access.subresource else access.resource
    where = f'in the namespace "{access.namespace}"' if access.namespace else "at the cluster scope"
    return f'User "{user.name}" cannot {access.verb} resource "{resource}" in API group "{access.group}" {where}'


def denied(user: User, access: Access) -> Denial:
    """The same as data."""
    resource = f"{access.resource}/{access.subresource}" if access.subresource else access.resource
    return Denial(user.name, (access.verb,), resource, access.group, access.namespace)


def forbidden_message(user: User, access: Access, reason: str = "") -> str:
    """The whole message of a refusal: `pods "x" is forbidden: User ... cannot get resource "pods" ...`."""
    message = f"{denial(user, access)}: {reason}" if reason else denial(user, access)
    if access.path:
        return f"forbidden: {message}"
    resource = f"{access.resource}.{access.group}" if access.group else access.resource
    return (
        f'{resource} "{access.name}" is forbidden: {message}' if access.name else f"{resource} is forbidden: {message}"
    )


def grants(user: User, namespace: str, world: Roles) -> Iterator[Grant]:
    """Every rule that applies to a user: cluster-wide, then in one namespace."""
    for group, role in default_roles.BINDINGS:
        if group in user.groups:
            source = f'ClusterRoleBinding "{role}" of ClusterRole "{role}" to Group "{group}"'
            yield from (Grant(source, rule) for rule in default_roles.rules_of(role) or ())
    for binding in world.all("ClusterRoleBinding", group=GROUP):
        yield from _granted(user, binding, "", world)
    for binding in world.all("RoleBinding", namespace, GROUP) if namespace else ():
        yield from _granted(user, binding, namespace, world)


def allows(rule: Body, access: Access) -> bool:
    if not _has(listed(rule, "verbs"), access.verb):
        return False
    if access.path:
        return any(_covers(path, access.path) for path in listed(rule, "nonResourceURLs"))
    names = listed(rule, "resourceNames")
    return (
        _has(listed(rule, "apiGroups"), access.group)
        and _has_resource(listed(rule, "resources"), access)
        and (not names or access.name in names)
    )


def _granted(user: User, binding: Body, namespace: str, world: Roles) -> Iterator[Grant]:
    subject = next((s for s in listed(binding, "subjects") if _matches(user, s, namespace)), None)
    if subject is None:
        return
    role = binding.get("roleRef") or {}
    rules = _rules(str(role.get("kind")), str(role.get("name")), namespace, world)
    if rules is None:
        message = f'{str(role.get("kind")).lower()}.{GROUP} "{role.get("name")}" not found'
        yield Grant("", {}, message)
        return
    kind = "RoleBinding" if namespace else "ClusterRoleBinding"
    name = f"{name_of(binding)}/{namespace}" if namespace else name_of(binding)
    to = f'{kind} "{name}" of {role.get("kind")} "{role.get("name")}" to {_described(subject, namespace)}'
    yield from (Grant(to, rule) for rule in rules)


def _matches(user: User, subject: Body, namespace: str) -> bool:
    name = str(subject.get("name"))
    match subject.get("kind"):
        case "User":
            return user.name == name
        case "Group":
            return name in user.groups
        case "ServiceAccount":
            namespace_of_subject = subject.get("namespace") or namespace
            return bool(namespace_of_subject) and user.name == f"{ACCOUNT}{namespace_of_subject}:{name}"
    return False


def _described(subject: Body, namespace: str) -> str:
    kind, name = subject.get("kind"), subject.get("name")
    if kind == "ServiceAccount":
        return f'{kind} "{name}/{subject.get("namespace") or namespace}"'
    return f'{kind} "{name}"'


def _rules(kind: str, name: str, namespace: str, world: Roles) -> list[Body] | None:
    """The rules of a role; None if there is no such role."""
    if kind == "Role":
        found = world.get(Ref(kind, namespace, name, GROUP))
        if found is None:
            known = default_roles.role_rules_of(namespace, name)
            return None if known is None else list(known)
        return listed(found, "rules")
    return _cluster_rules(name, world, frozenset())


def _cluster_rules(name: str, world: Roles, seen: frozenset[str]) -> list[Body] | None:
    known = default_roles.rules_of(name)
    if parts := default_roles.AGGREGATED.get(name):
        labels = [f"{AGGREGATE_TO}{part.removeprefix('system:aggregate-to-')}" for part in parts]
        selectors = [{"matchLabels": {label: "true"}} for label in labels]
        return [*(known or ()), *_aggregated(selectors, world, seen | {name})]
    found = world.get(Ref("ClusterRole", "", name, GROUP))
    if found is None:
        return None if known is None else list(known)
    if dig(found, "aggregationRule") is not None:
        # Its own rules are replaced by those of the roles it selects.
        selectors = listed(found, "aggregationRule", "clusterRoleSelectors")
        return list(_aggregated(selectors, world, seen | {name}))
    return listed(found, "rules")


def _aggregated(selectors: list[Body], world: Roles, seen: frozenset[str]) -> Iterator[Body]:
    for role in world.all("ClusterRole", group=GROUP) if selectors else ():
        if name_of(role) not in seen and any(fits(labels_of(role), selector) for selector in selectors):
            yield from _cluster_rules(name_of(role), world, seen) or ()


def _has(named: list[str], wanted: str) -> bool:
    return "*" in named or wanted in named


def _has_resource(named: list[str], access: Access) -> bool:
    whole = f"{access.resource}/{access.subresource}" if access.subresource else access.resource
    return _has(named, whole) or (bool(access.subresource) and f"*/{access.subresource}" in named)


def _covers(pattern: str, path: str) -> bool:
    return pattern in ("*", path) or (pattern.endswith("*") and path.startswith(pattern.rstrip("*")))


def _joined(errors: list[str]) -> str:
    unique = list(dict.fromkeys(errors))
    return unique[0] if len(unique) == 1 else f"[{', '.join(unique)}]"
