"""Role, ClusterRole and their bindings. A binding to a missing role is accepted and grants nothing."""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.kinds import Kind, Need
from seatrial.kinds.core.entries import entries
from seatrial.kinds.core.immutable import NEWEST, invalid, role_ref
from seatrial.kinds.core.objectmeta import namespace_of
from seatrial.model.resource import Body, Ref, listed

GROUP = "rbac.authorization.k8s.io"
BUILT_IN = ("admin", "cluster-admin", "edit", "view")
"""ClusterRoles that every API server creates, besides those that begin with `system:`."""


def needs(binding: Body) -> Iterator[Need]:
    role = binding.get("roleRef") or {}
    name, kind = str(role.get("name") or ""), str(role.get("kind") or "")
    if name and not (kind == "ClusterRole" and (name in BUILT_IN or name.startswith("system:"))):
        namespace = namespace_of(binding) if kind == "Role" else ""
        yield Need(Ref(kind, namespace, name, GROUP), "serve", ("roleRef", "name"))
    for index, subject in entries(binding, "subjects"):
        if subject.get("kind") == "ServiceAccount" and subject.get("name") not in (None, "default"):
            where = str(subject.get("namespace") or namespace_of(binding))
            yield Need(Ref("ServiceAccount", where, str(subject["name"])), "serve", ("subjects", index, "name"))


def immutable(old: Body, new: Body, minor: int = NEWEST, /) -> Iterator[str]:
    if old.get("roleRef") != new.get("roleRef"):
        yield invalid("roleRef", role_ref(new.get("roleRef") or {}, minor), "cannot change roleRef")


def default(binding: Body) -> Body:
    filled = dict(binding)
    if isinstance(binding.get("roleRef"), dict):
        filled["roleRef"] = {"apiGroup": GROUP, **binding["roleRef"]}
    if subjects := listed(binding, "subjects"):
        filled["subjects"] = [_default_subject(subject) for subject in subjects]
    return filled


def _default_subject(subject: Body) -> Body:
    return {"apiGroup": GROUP, **subject} if subject.get("kind") in ("User", "Group") else subject


KINDS = (
    Kind("Role", GROUP),
    Kind("ClusterRole", GROUP, actor="clusterrole-aggregation-controller"),
    Kind("RoleBinding", GROUP, needs=needs, immutable=immutable, default=default),
    Kind("ClusterRoleBinding", GROUP, needs=needs, immutable=immutable, default=default),
)
