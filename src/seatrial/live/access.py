"""Missing permissions, and the Roles that would grant them."""

from __future__ import annotations

from collections.abc import Iterable

from seatrial.model.refusal import Denial
from seatrial.model.resource import Body

NAME = "seatrial"


def sentence(denial: Denial) -> str:
    """`list secrets in namespace shop`, `get nodes`, `patch deployments.apps in all namespaces`."""
    resource = f"{denial.resource}.{denial.group}" if denial.group else denial.resource
    where = f"in namespace {denial.namespace}" if denial.namespace else "in the whole cluster"
    return f"{', '.join(denial.verbs)} {resource} {where}"


def roles(denials: Iterable[Denial], name: str = NAME) -> list[Body]:
    """A Role for each namespace, and a ClusterRole for what is needed in the whole cluster."""
    verbs: dict[str, dict[tuple[str, str], set[str]]] = {}
    for denial in denials:
        verbs.setdefault(denial.namespace, {}).setdefault((denial.group, denial.resource), set()).update(denial.verbs)
    return [_role(name, namespace, verbs[namespace]) for namespace in sorted(verbs)]


def _role(name: str, namespace: str, verbs: dict[tuple[str, str], set[str]]) -> Body:
    """Resources of one group that need the same verbs share a rule."""
    shared: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for (group, resource), found in sorted(verbs.items()):
        shared.setdefault((group, tuple(sorted(found))), []).append(resource)
    rules = [
        {"apiGroups": [group], "resources": resources, "verbs": [*needed]}
        for (group, needed), resources in shared.items()
    ]
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role" if namespace else "ClusterRole",
        "metadata": {"name": name, **({"namespace": namespace} if namespace else {})},
        "rules": rules,
    }
