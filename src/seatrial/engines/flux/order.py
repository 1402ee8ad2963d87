"""The order in which Flux applies objects and deletes them, and the stages of one Kustomization.

Upstream: `ssa/sort.go` and `ApplyAllStaged` in `ssa/manager_apply.go` of fluxcd/pkg. Kinds count, groups do not.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from seatrial.engines.script import Described, DescribedObject

D = TypeVar("D", bound=Described)

FIRST = (
    *("CustomResourceDefinition", "Namespace", "ClusterRole", "ClusterClass", "RuntimeClass", "PriorityClass"),
    *("StorageClass", "VolumeSnapshotClass", "IngressClass", "GatewayClass", "ClusterRoleBinding", "ResourceQuota"),
    *("ServiceAccount", "Role", "RoleBinding", "ConfigMap", "Secret", "Service", "LimitRange", "Deployment"),
    *("StatefulSet", "CronJob", "PodDisruptionBudget"),
)
LAST = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
DEFINITIONS = ("CustomResourceDefinition", "Namespace", "ClusterRole")
_RANKS = {
    **{kind: index - len(FIRST) for index, kind in enumerate(FIRST)},
    **{kind: index + 1 for index, kind in enumerate(LAST)},
}


def in_order(targets: Iterable[D]) -> list[D]:
    """As they are applied; deletions go the other way round."""
    return sorted(targets, key=_key)


def stages(targets: Iterable[DescribedObject]) -> list[list[DescribedObject]]:
    """CRDs and namespaces, then classes, then everything else; Flux waits after each but the last."""
    parts: tuple[list[DescribedObject], ...] = ([], [], [])
    for target in in_order(targets):
        kind = target.ref.kind
        place = 0 if kind in DEFINITIONS else 1 if kind.endswith("Class") else 2
        parts[place].append(target)
    return list(parts)


def _key(target: Described) -> tuple[int, str, str, str, str]:
    ref = target.ref
    return _RANKS.get(ref.kind, 0), ref.group, ref.kind, ref.namespace, ref.name
