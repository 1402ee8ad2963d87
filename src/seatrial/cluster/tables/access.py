"""Columns of `kubectl get` for ServiceAccounts, bindings, webhooks and priority classes."""

from __future__ import annotations

from seatrial.cluster.tables.column import AGE, NAME, Cell, Column, Columns, at, count, number
from seatrial.model.resource import Body, dig, listed


def _subjects(kind: str) -> Cell:
    def cell(body: Body, now: str) -> str:
        found = [s for s in listed(body, "subjects") if s.get("kind") == kind]
        own = [f"{s.get('namespace', '')}/{s['name']}" if kind == "ServiceAccount" else s["name"] for s in found]
        return ", ".join(own)

    return cell


def _role(body: Body, now: str) -> str:
    return f"{dig(body, 'roleRef', 'kind')}/{dig(body, 'roleRef', 'name')}"


_BINDING = (
    NAME,
    Column("Role", _role),
    AGE,
    Column("Users", _subjects("User"), wide=True),
    Column("Groups", _subjects("Group"), wide=True),
    Column("ServiceAccounts", _subjects("ServiceAccount"), wide=True),
)
_WEBHOOKS = (NAME, Column("Webhooks", count(("webhooks",)), "integer"), AGE)

COLUMNS: Columns = {
    ("", "ServiceAccount"): (NAME, Column("Secrets", count(("secrets",))), AGE),
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"): _WEBHOOKS,
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"): _WEBHOOKS,
    ("coordination.k8s.io", "Lease"): (NAME, Column("Holder", at("spec", "holderIdentity")), AGE),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): _BINDING,
    ("rbac.authorization.k8s.io", "RoleBinding"): _BINDING,
    ("scheduling.k8s.io", "PriorityClass"): (
        NAME,
        number("Value", "value"),
        Column("Global-Default", at("globalDefault", default=False), "boolean"),
        AGE,
        Column("PreemptionPolicy", at("preemptionPolicy")),
    ),
}
